//! Lists of jobs: orders, pages and filters.

use app::domain::ids::JobId;
use app::domain::job::{AttemptLoss, Job, JobDescription, JobProperty, JobSpec};
use app::domain::labels::Labels;
use app::domain::time::Timestamp;
use app::domain::worker::OfflineCause;

use super::history::{attempt, insert};
use super::{LEASE, NOW, TestStore, job, on_every_engine, worker};
use crate::store::jobs::{JobFilter, JobListOrder, JobNameFilter, QueueCursor};
use crate::store::sql::rows::job::immutable_columns;
use crate::store::sql::statement::SqlValue;

on_every_engine!(
    jobs_are_paged_and_counted,
    jobs_are_filtered_by_each_property,
    jobs_are_filtered_by_user_and_label,
    jobs_are_filtered_by_worker_and_time,
    jobs_are_filtered_by_name_among_many,
    oldest_of_ten_thousand_jobs_is_found_by_name,
    waiting_jobs_are_listed_in_queue_order,
);

async fn jobs_are_paged_and_counted(store: &TestStore) {
    for n in 1..=5 {
        store.insert_job(&job(n)).await;
    }
    let cancelled = job(4).cancelled(NOW).expect("waits");
    store.update_job(&job(4), &cancelled).await.expect("as it was read");
    let mut tx = store.read().await;
    let page = |states: &[&'static str], before: Option<&JobId>, limit| JobFilter {
        states: states.to_vec(),
        order: JobListOrder::Newest(before.map(ToString::to_string)),
        limit,
        ..JobFilter::default()
    };
    let ids = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>();
    let first = ids(tx.jobs(&page(&[], None, 2)).await.expect("readable"));
    assert_eq!(first, [job(5).id, job(4).id]);
    let second = ids(tx.jobs(&page(&[], first.last(), 9)).await.expect("readable"));
    assert_eq!(second, [job(3).id, job(2).id, job(1).id]);
    let queued = ids(tx.jobs(&page(&["queued"], None, 9)).await.expect("readable"));
    assert_eq!(queued, [job(5).id, job(3).id, job(2).id, job(1).id]);
    let mut counts = tx.count_jobs(&JobFilter::default()).await.expect("readable");
    counts.sort();
    assert_eq!(counts, [("cancelled".to_owned(), 1), ("queued".to_owned(), 4)]);
}

/// The value of a property of a job.
fn value_of(property: JobProperty, job: &Job) -> String {
    match immutable_columns(job).into_iter().find(|(column, _)| *column == property.as_str()) {
        Some((_, SqlValue::Text(Some(value)))) => value,
        _ => panic!("the example of a job has no text in {}", property.as_str()),
    }
}

async fn jobs_are_filtered_by_each_property(store: &TestStore) {
    store.insert_job(&job(1)).await;
    store.insert_job(&Job { submitted_by: "bob".to_owned(), spec: JobSpec::new("faces", 1), ..job(2) }).await;
    let mut tx = store.read().await;
    for property in JobProperty::ALL {
        for (value, expected) in [(value_of(property, &job(1)), vec![job(1).id]), ("none".to_owned(), vec![])] {
            let filter = JobFilter { properties: vec![(property, value)], limit: 9, ..JobFilter::default() };
            let found: Vec<_> = tx.jobs(&filter).await.expect("readable").into_iter().map(|job| job.id).collect();
            assert_eq!(found, expected, "{filter:?}");
            let counted: u64 = tx.count_jobs(&filter).await.expect("readable").iter().map(|(_, number)| number).sum();
            assert_eq!(counted, expected.len() as u64, "{filter:?}");
        }
    }
}

async fn jobs_are_filtered_by_user_and_label(store: &TestStore) {
    let label = |key: &str, value: Option<&str>| Some((key.to_owned(), value.map(str::to_owned)));
    let bobs_job = Job { submitted_by: "bob".to_owned(), ..job(1) };
    store.insert_job(&bobs_job).await;
    store.insert_job(&job(2)).await;
    let mut plain = job(3);
    plain.spec.demand.labels = Labels::default();
    store.insert_job(&plain).await;
    let mut tx = store.read().await;
    let filters = [
        (Some("bob"), None, vec![1]),
        (Some("eve"), None, vec![]),
        (None, label("gpu_type", None), vec![2, 1]),
        (None, label("gpu_type", Some("a100*")), vec![2, 1]),
        (Some("ada"), label("gpu_type", Some("a100*")), vec![2]),
        (None, label("gpu_type", Some("a100")), vec![]),
        (None, label("team", None), vec![]),
    ];
    for (user, label, expected) in filters {
        let filter = JobFilter { label, limit: 9, ..JobFilter::of_user(user.map(str::to_owned)) };
        let found: Vec<_> = tx.jobs(&filter).await.expect("readable").into_iter().map(|job| job.id).collect();
        assert_eq!(found, expected.iter().map(|n| job(*n).id).collect::<Vec<_>>(), "{filter:?}");
        let counted: u64 = tx.count_jobs(&filter).await.expect("readable").iter().map(|(_, number)| number).sum();
        assert_eq!(counted, expected.len() as u64, "{filter:?}");
    }
}

async fn jobs_are_filtered_by_worker_and_time(store: &TestStore) {
    for n in 1..=4 {
        store.insert_job(&job(n)).await;
    }
    // Cancelled while waiting, held by a worker, and requeued by it.
    let at = |n: u8| job(n).submitted_at;
    let offer = |n: u8| job(n).offered(at(n), worker(1).id, vec![], at(n)).expect("waits");
    store.update_job(&job(1), &job(1).cancelled(at(3)).expect("waits")).await.expect("as it was read");
    store.update_job(&job(2), &offer(2)).await.expect("as it was read");
    store.update_job(&job(3), &offer(3)).await.expect("as it was read");
    let lost = offer(3).lost(at(3), AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout), LEASE);
    store.update_job(&offer(3), &lost).await.expect("as it was read");
    insert(store, attempt(&job(2).id, 1), "two").await;
    insert(store, attempt(&job(3).id, 1), "three").await;
    let all = JobFilter { limit: 9, ..JobFilter::default() };
    let filters = [
        (JobFilter { worker: Some(worker(1).id), ..all.clone() }, vec![3, 2]),
        (JobFilter { worker: Some(worker(2).id), ..all.clone() }, vec![]),
        (JobFilter { since: Some(at(3)), ..all.clone() }, vec![4, 3]),
        (JobFilter { until: Some(at(3)), ..all.clone() }, vec![2, 1]),
        (JobFilter { since: Some(at(2)), until: Some(at(4)), worker: Some(worker(1).id), ..all.clone() }, vec![3, 2]),
        (
            JobFilter { since: Some(Timestamp(i64::MIN)), until: Some(Timestamp(i64::MAX)), ..all.clone() },
            vec![4, 3, 2, 1],
        ),
        (JobFilter { ended_since: Some(at(3)), ..all.clone() }, vec![1]),
        (JobFilter { ended_since: Some(at(4)), ..all.clone() }, vec![]),
    ];
    let mut tx = store.read().await;
    for (filter, expected) in filters {
        let found: Vec<_> = tx.jobs(&filter).await.expect("readable").into_iter().map(|job| job.id).collect();
        assert_eq!(found, expected.iter().map(|n| job(*n).id).collect::<Vec<_>>(), "{filter:?}");
        let counted: u64 = tx.count_jobs(&filter).await.expect("readable").iter().map(|(_, number)| number).sum();
        assert_eq!(counted, expected.len() as u64, "{filter:?}");
    }
}

async fn jobs_are_filtered_by_name_among_many(store: &TestStore) {
    let named = |n: u8, config: &str| {
        let mut job = job(n);
        config.clone_into(&mut job.spec.config_name);
        job
    };
    let description = JobDescription { name: Some("L’Été".to_owned()), ..JobDescription::default() };
    store.insert_job(&Job { description, ..named(1, "Needle-in-Haystack") }).await;
    for n in 2..=200 {
        store.insert_job(&named(n, if n % 2 == 0 { "hay" } else { "hay_2" })).await;
    }
    let all = JobFilter { limit: 500, ..JobFilter::default() };
    let with_name = |text: &str| JobFilter { name: Some(JobNameFilter::parse(text)), ..all.clone() };
    let config = |name: &str| JobFilter { properties: vec![(JobProperty::Config, name.to_owned())], ..all.clone() };
    let eves_jobs = vec![(JobProperty::Config, "hay".to_owned()), (JobProperty::User, "eve".to_owned())];
    let id = job(7).id.to_string();
    let odd: Vec<u8> = (2..=200).rev().filter(|n| n % 2 == 1).collect();
    let filters = [
        (with_name("NEEDLE"), vec![1]),
        (with_name("in-hay"), vec![1]),
        (with_name("haystack%"), vec![]),
        (with_name("_2"), odd.clone()),
        (with_name("hay"), (1..=200).rev().collect()),
        (JobFilter { limit: 2, ..with_name("hay_") }, vec![199, 197]),
        (with_name("needles"), vec![]),
        (config("hay_2"), odd),
        (config("needle-in-haystack"), vec![]),
        (JobFilter { properties: eves_jobs, ..all.clone() }, vec![]),
        (with_name("ÉTÉ"), vec![1]),
        (with_name("été in"), vec![]),
        (with_name(&id), vec![7]),
        (JobFilter { limit: 1, ..with_name(&id[..4]) }, vec![200]),
        (with_name("j_zzz"), vec![]),
    ];
    let mut tx = store.read().await;
    for (filter, expected) in filters {
        let found: Vec<_> = tx.jobs(&filter).await.expect("readable").into_iter().map(|job| job.id).collect();
        assert_eq!(found, expected.iter().map(|n| job(*n).id).collect::<Vec<_>>(), "{filter:?}");
        let counted: u64 = tx.count_jobs(&filter).await.expect("readable").iter().map(|(_, number)| number).sum();
        assert!(counted == expected.len() as u64 || filter.limit < 500, "{filter:?}: {counted}");
    }
}

async fn oldest_of_ten_thousand_jobs_is_found_by_name(store: &TestStore) {
    let named = |n: i64| {
        let at = Timestamp(NOW.0 + n);
        let mut job = Job { id: JobId::new(at, [1; 10]), submitted_at: at, ..job(1) };
        let config = if n == 0 { "needle-in-haystack" } else { "hay" };
        config.clone_into(&mut job.spec.config_name);
        job
    };
    let jobs: Vec<Job> = (0..10_000).map(named).collect();
    let oldest = jobs[0].id.clone();
    let write = store.write(move |tx| {
        let jobs = jobs.clone();
        Box::pin(async move {
            for job in &jobs {
                tx.insert_job(job).await?;
            }
            Ok(())
        })
    });
    write.await.expect("new ids");
    let mut tx = store.read().await;
    let all: u64 = tx.count_jobs(&JobFilter::default()).await.expect("readable").iter().map(|(_, number)| number).sum();
    assert_eq!(all, 10_000);
    for text in ["Needle", "in-hay", oldest.as_str()] {
        let filter = JobFilter { name: Some(JobNameFilter::parse(text)), limit: 50, ..JobFilter::default() };
        let found: Vec<_> = tx.jobs(&filter).await.expect("readable").into_iter().map(|job| job.id).collect();
        assert_eq!(found, std::slice::from_ref(&oldest), "{text}");
    }
}

async fn waiting_jobs_are_listed_in_queue_order(store: &TestStore) {
    let with_priority = |n: u8, priority| Job { priority, ..job(n) };
    let jobs =
        [with_priority(1, 20), with_priority(2, 50), with_priority(3, 20), with_priority(4, 0), with_priority(5, 50)];
    for job in &jobs {
        store.insert_job(job).await;
    }
    let page = |after: Option<&Job>, limit| JobFilter {
        states: vec!["queued", "offered"],
        order: JobListOrder::QueueOrder(after.map(QueueCursor::from_job)),
        limit,
        ..JobFilter::default()
    };
    let listed = async |filter: JobFilter| store.read().await.jobs(&filter).await.expect("readable");
    let queue_order = [2, 5, 1, 3, 4].map(|n: usize| jobs[n - 1].clone());
    assert_eq!(listed(page(None, 9)).await, queue_order);
    let first = listed(page(None, 2)).await;
    assert_eq!(first, queue_order[..2]);
    // The page continues at its position, although the last job of the previous page was cancelled.
    store.update_job(&first[1], &first[1].clone().cancelled(NOW).expect("waits")).await.expect("as it was read");
    assert_eq!(listed(page(first.last(), 2)).await, queue_order[2..4]);
    assert_eq!(listed(page(Some(&queue_order[3]), 9)).await, queue_order[4..]);
    store.execute_raw("UPDATE jobs SET target = 'banana' WHERE submitted_at = 1705314600001").await;
    assert_eq!(listed(page(None, 3)).await, [queue_order[0].clone(), queue_order[3].clone(), queue_order[4].clone()]);
}
