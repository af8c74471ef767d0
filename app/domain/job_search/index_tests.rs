//! Tests of the index: what matches, pages in each order, and changes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::columns::JobListColumns;
use super::groups::{JobGroup, JobGrouping};
use super::index::*;
use super::order::{JobColumn, JobCursor, JobOrder, JobSortKey};
use super::query::JobSearchQuery;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::job_status::JobStatus;
use crate::domain::labels::Labels;
use crate::domain::time::Timestamp;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn id(n: u16) -> JobId {
    JobId::new(Timestamp(NOW.0 + i64::from(n)), [0; 10])
}

fn value(text: &str) -> ConfigValue {
    ConfigValue { text: text.to_owned(), number: text.parse().ok() }
}

fn job(n: u16) -> IndexedJob {
    IndexedJob {
        id: id(n),
        number: Some(n.into()),
        config: format!("config-{}", n % 3),
        revision: 1 + u32::from(n % 2),
        name: n.is_multiple_of(2).then(|| format!("Run {n}")),
        tags: vec![["ablation", "night"][usize::from(n % 2)].to_owned()],
        starred_by: Vec::new(),
        user: ["ada", "bob"][usize::from(n / 2 % 2)].to_owned(),
        status: JobStatus::ALL[usize::from(n) % JobStatus::ALL.len()],
        submitted_at: Timestamp(NOW.0 + i64::from(n)),
        started_at: n.is_multiple_of(3).then_some(Timestamp(NOW.0 + 1_000)),
        ended_at: n.is_multiple_of(6).then_some(Timestamp(NOW.0 + 5_000 + i64::from(n))),
        priority: u8::try_from(n % 50).expect("less than 50"),
        urgency: i64::from(n % 5),
        labels: Labels::default(),
        gpus: n.is_multiple_of(4).then(|| u32::from(n % 8)),
        workers: Vec::new(),
        overrides: BTreeMap::new(),
        metrics: if n.is_multiple_of(2) {
            BTreeMap::from([("loss".to_owned(), f64::from(n) / 10.0)])
        } else {
            BTreeMap::new()
        },
    }
}

/// A job with every property.
pub(super) fn full_job() -> IndexedJob {
    let at = |text: &str| Timestamp::parse_rfc3339(text).expect("a time");
    let worker = |n: u8| WorkerId::new(Timestamp(0), [n; 10]);
    IndexedJob {
        id: id(7),
        number: Some(42),
        config: "Flux-LoRA".to_owned(),
        revision: 3,
        name: Some("Grüner Frosch".to_owned()),
        tags: vec!["ablation".to_owned(), "night run".to_owned()],
        starred_by: vec!["eve".to_owned()],
        user: "ada".to_owned(),
        status: JobStatus::Failed,
        submitted_at: at("2026-11-01T10:00:00Z"),
        started_at: Some(at("2026-11-01T11:00:00Z")),
        ended_at: Some(at("2026-11-01T13:30:00Z")),
        priority: 10,
        urgency: 0,
        labels: Labels(BTreeMap::from([
            ("gpu_type".to_owned(), "a100*".to_owned()),
            ("a=b".to_owned(), "c".to_owned()),
        ])),
        gpus: Some(4),
        workers: vec![(worker(1), "rack-1".to_owned()), (worker(2), "rack-2".to_owned())],
        overrides: BTreeMap::from([("rank".to_owned(), Some(value("16"))), ("seed".to_owned(), None)]),
        metrics: BTreeMap::from([
            ("loss".to_owned(), 0.25),
            ("lr".to_owned(), 2e-5),
            ("val/loss".to_owned(), f64::NAN),
        ]),
    }
}

fn index(jobs: impl IntoIterator<Item = IndexedJob>) -> JobIndex {
    let mut index = JobIndex::default();
    index.update([], jobs);
    index
}

fn number_of(index: &JobIndex, query: &str) -> u64 {
    let query = JobSearchQuery::parse(query).unwrap_or_else(|error| panic!("{query:?}: {error:?}"));
    index.count(&query, NOW).sum(|_| true)
}

#[test]
fn queries_match_each_property() {
    let mut index = index([full_job()]);
    let values = [("rank", "8"), ("seed", "5"), ("model.type", "SDXL"), ("lr", "1")];
    index.set_values("Flux-LoRA", 3, values.map(|(key, text)| (key.to_owned(), value(text))).into());
    assert_eq!(index.revisions_without_values(), []);
    let id = full_job().id.to_string();
    let matching = [
        "",
        "frosch",
        "GRÜNER",
        "flux",
        "lora ablation",
        "rack-1",
        "gpu_type=a100*",
        "starred:eve",
        "ada",
        "#42",
        &id,
        &id[..6],
        &id[20..],
        "name:frosch",
        "config:flux*",
        "config=Flux-LoRA",
        "tag:abl*",
        "tag=\"night run\"",
        "user:ada",
        "worker:rack-2",
        "status:failed",
        "status:ended",
        "label.gpu_type:a100",
        "label.gpu_type=a100*",
        "label.\"a=b\"=c",
        "number:42",
        "revision:3",
        "gpus>=4",
        "priority<11",
        "attempts:2",
        "submitted:2026-11-01",
        "started<2026-11-02",
        "ended>=2026-11-01T13:30:00Z",
        "duration>2h",
        "duration<=150m",
        "loss<0.3",
        "lr>1e-5",
        "lr<1",
        "metric.loss>=0.25",
        "rank>8",
        "config.rank:16",
        "config.rank>8",
        "config.model.type:sdxl",
        "-status:running",
        "-config.seed:5",
        "-val/loss<1",
    ];
    for query in matching {
        assert_eq!(number_of(&index, query), 1, "{query:?}");
    }
    let not_matching = [
        "toad",
        "#41",
        "config=flux-lora",
        "tag=night",
        "user:bob",
        "status:active",
        "-flux",
        "label.gpu_type=a100",
        "label.a:b",
        "label.team:nlp",
        "gpus<4",
        "submitted>2026-11-01",
        "duration>3h",
        "loss>0.3",
        "val/loss<1",
        "val/loss>=1",
        "config.rank:8",
        "config.seed:5",
        "config.none>0",
        "metric.rank>1",
        "frosch status:running",
    ];
    for query in not_matching {
        assert_eq!(number_of(&index, query), 0, "{query:?}");
    }
}

fn listed(index: &JobIndex, query: &str, order: &JobOrder, limit: usize) -> Vec<JobId> {
    let query = JobSearchQuery::parse(query).expect("a query");
    let (mut ids, mut after) = (Vec::new(), None::<JobCursor>);
    loop {
        let request =
            JobPageRequest { query: &query, statuses: &JobStatus::ALL, order, after: after.as_ref(), limit, now: NOW };
        let page = index.select(&request);
        assert!(page.ids.len() <= limit);
        ids.extend(page.ids);
        match page.next {
            Some(next) => after = Some(JobCursor::parse(&next.to_string()).expect("a cursor")),
            None => return ids,
        }
    }
}

#[test]
fn values_of_configurations_are_requested_once() {
    let mut index = index((0..6).map(job));
    let missing = index.revisions_without_values();
    assert_eq!(missing.len(), 6);
    for (config, revision) in missing {
        index.set_values(&config, revision, ConfigValues::from([("rank".to_owned(), value(&revision.to_string()))]));
    }
    assert_eq!(index.revisions_without_values(), []);
    let by_rank = JobOrder::parse("config.rank").expect("an order");
    assert_eq!(listed(&index, "", &by_rank, 9), [4, 2, 0, 5, 3, 1].map(id));
    assert_eq!(listed(&index, "rank>1", &by_rank, 9), [5, 3, 1].map(id));
}

fn orders() -> Vec<JobOrder> {
    let columns = JobColumn::ALL.map(JobSortKey::Column);
    let keys = columns.into_iter().chain([JobSortKey::Queue, JobSortKey::Metric("loss".to_owned())]);
    keys.flat_map(|key| [false, true].map(|descending| JobOrder { key: key.clone(), descending })).collect()
}

#[test]
fn pages_of_each_order_have_each_job_once() {
    let index = index((0..40).map(job));
    for order in orders() {
        let all = listed(&index, "", &order, 100);
        assert_eq!(all.len(), 40, "{order}");
        for limit in [1, 7, 39, 40] {
            assert_eq!(listed(&index, "", &order, limit), all, "{order} by {limit}");
        }
        let failed = listed(&index, "status:failed", &order, 3);
        assert_eq!(
            failed,
            all.into_iter()
                .filter(|id| (0..40).any(|n| *id == super::index_tests::id(n) && job(n).status == JobStatus::Failed))
                .collect::<Vec<_>>(),
            "{order}"
        );
    }
}

#[test]
fn orders_by_columns() {
    let index = index((0..7).map(job));
    let first = |order: &str| listed(&index, "", &JobOrder::parse(order).expect("an order"), 3)[..3].to_vec();
    assert_eq!(first("-submitted"), [6, 5, 4].map(id));
    assert_eq!(first("submitted"), [0, 1, 2].map(id));
    assert_eq!(first("name"), [0, 2, 4].map(id), "\"Run 0\" sorts before \"config-0\" in natural order");
    assert_eq!(first("-metric.loss"), [6, 4, 2].map(id));
    assert_eq!(first("started"), [6, 3, 0].map(id), "equal ones: the newest first");
    assert_eq!(first("-ended"), [6, 0, 5].map(id), "those without a value are last");
    assert_eq!(first("queue"), [4, 3, 2].map(id), "the most urgent first");
    assert_eq!(first("user"), [5, 4, 1].map(id));
}

proptest! {
    /// Changes lead to the same index as building it from the result.
    #[test]
    fn changes_have_the_same_result_as_a_new_index(steps in prop::collection::vec((any::<bool>(), 0..30_u16, 0..8_usize), 0..40)) {
        let (mut changed, mut jobs) = (JobIndex::default(), BTreeMap::new());
        for step in steps.chunks(3) {
            let mut ids = Vec::new();
            for (removes, n, status) in step {
                ids.push(id(*n));
                if *removes {
                    jobs.remove(&id(*n));
                } else {
                    jobs.insert(id(*n), IndexedJob { status: JobStatus::ALL[*status], ..job(*n) });
                }
            }
            let found: BTreeMap<_, _> = ids.iter().filter_map(|id| Some((id.clone(), jobs.get(id)?.clone()))).collect();
            changed.update(ids, found.into_values());
        }
        let built = index(jobs.values().cloned());
        prop_assert_eq!(changed.len(), built.len());
        prop_assert_eq!(changed.newest(), jobs.keys().next_back());
        for order in orders() {
            prop_assert_eq!(listed(&changed, "loss<2", &order, 5), listed(&built, "loss<2", &order, 5));
        }
        let everything = JobSearchQuery::default();
        prop_assert_eq!(changed.count(&everything, NOW), built.count(&everything, NOW));
    }
}

#[test]
fn values_that_no_job_has_any_more_are_removed() {
    let changed = |n: u16| IndexedJob {
        tags: vec![format!("tag-{n}")],
        workers: vec![(WorkerId::new(Timestamp(0), [1; 10]), format!("worker-{n}"))],
        metrics: BTreeMap::from([(format!("metric-{n}"), f64::from(n))]),
        revision: n.into(),
        ..full_job()
    };
    let mut index = index((0..20).filter(|n| *n != 7).map(job));
    index.set_values("config-0", 1, BTreeMap::from([("rank".to_owned(), value("8"))]));
    for n in 0..10_000 {
        index.update([], [changed(n)]);
    }
    assert!(index.shared_values() < 5_000, "{}", index.shared_values());
    let found =
        ["tag:tag-9999", "worker-9999", "metric-9999>=9999", "revision:9999 user:ada", "tag:tag-1", "config.rank=8"];
    assert_eq!(found.map(|query| number_of(&index, query)), [1, 1, 1, 1, 0, 4]);
    assert_eq!(number_of(&index, "tag:night"), 9);
    assert_eq!(number_of(&index, ""), 20);
}

#[test]
fn columns_have_metrics_and_values_of_the_configuration() {
    let mut index = index([full_job(), job(2)]);
    index.set_values(
        "Flux-LoRA",
        3,
        [("rank", "8"), ("seed", "5"), ("lr", "1e-5")].map(|(key, text)| (key.to_owned(), value(text))).into(),
    );
    let columns =
        JobListColumns::parse("status,metric.loss,metric.other,config.rank,config.seed,config.lr").expect("columns");
    let values = index.values(&id(7), &columns);
    let text = |text: &str| IndexedValue::Text(text.to_owned());
    let expected =
        [("metric.loss", IndexedValue::Number(0.25)), ("config.rank", text("16")), ("config.lr", text("1e-5"))];
    assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(index.values(&id(3), &columns), []);
}

#[test]
fn groups_count_what_matches() {
    let untagged = IndexedJob { tags: Vec::new(), status: JobStatus::Failed, ..job(40) };
    let index = index((0..12).map(job).chain([full_job(), untagged]));
    let groups = |by, query: &str, limit| {
        let query = JobSearchQuery::parse(query).expect("a query");
        let found = index.groups(by, &query, &JobStatus::ALL, limit, NOW);
        let count = |group: &JobGroup| (group.value.clone(), group.counts.sum(|_| true));
        (found.groups.iter().map(count).collect::<Vec<_>>(), found.total)
    };
    let named =
        |groups: &[(&str, u64)]| groups.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>();
    let by_config = [("config-1", 4), ("config-2", 4), ("config-0", 4), ("Flux-LoRA", 1)];
    let (found, total) = groups(JobGrouping::Config, "", 9);
    assert_eq!(total, 4);
    assert_eq!(BTreeMap::from_iter(found), BTreeMap::from_iter(named(&by_config)));
    assert_eq!(groups(JobGrouping::Config, "", 1), (named(&[("config-1", 4)]), 4), "the newest first");
    let (tags, _) = groups(JobGrouping::Tag, "", 9);
    assert_eq!(tags[0], (String::new(), 1), "jobs without a tag are a group");
    // A job with two tags is in both groups.
    assert_eq!(BTreeMap::from_iter(tags.clone())["ablation"], 7);
    assert_eq!(BTreeMap::from_iter(tags)["night run"], 1);
    assert_eq!(groups(JobGrouping::User, "config:flux", 9), (named(&[("ada", 1)]), 1));
    assert_eq!(groups(JobGrouping::User, "nothing-has-this-name", 9), (vec![], 0));
    let failed = index.groups(JobGrouping::Tag, &JobSearchQuery::default(), &[JobStatus::Failed], 9, NOW);
    assert!(failed.groups.iter().all(|group| group.counts.sum(|status| status != JobStatus::Failed) == 0));
}
