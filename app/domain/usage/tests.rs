//! What counts, held against counting millisecond by millisecond.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::calendar::Calendar;
use super::fleet::{Change, attendance, idle};
use super::spans::Spans;
use super::*;

const HOUR: i64 = 3_600_000;

fn worker(n: u8) -> WorkerId {
    WorkerId::new(Timestamp(0), [n; 10])
}

fn run(job: u8, on: u8, gpus: u32, started: i64, ended: Option<i64>) -> Run {
    let labels = Labels([("team".to_owned(), format!("t{}", job % 2))].into());
    Run {
        job: JobId::new(Timestamp(0), [job; 10]),
        user: format!("user-{}", job % 3),
        config: "digits".to_owned(),
        labels: if job.is_multiple_of(5) { Labels::default() } else { labels },
        worker: worker(on),
        worker_name: format!("worker-{on}"),
        gpus,
        offered: Timestamp(started - 1),
        started: Some(Timestamp(started)),
        ended: ended.map(Timestamp),
    }
}

fn window(since: i64, until: i64) -> Window {
    Window { since: Timestamp(since), until: Timestamp(until) }
}

#[test]
fn an_attempt_counts_for_the_part_that_lies_inside() {
    let runs = [
        run(1, 1, 2, 0, Some(10 * HOUR)),               // five hours of it are inside
        run(2, 1, 1, 7 * HOUR, None),                   // runs until now
        run(3, 2, 8, 0, Some(5 * HOUR)),                // was over when it began
        run(4, 2, 8, 9 * HOUR, Some(9 * HOUR)),         // took no time
        Run { started: None, ..run(6, 1, 8, 6, None) }, // was only offered
        run(1, 2, 0, 8 * HOUR, Some(9 * HOUR)),         // another attempt of the first, without GPUs
    ];
    let (total, by_user) = used(&runs, window(5 * HOUR, 9 * HOUR), By::User);
    let hours = |n: i64| Millis(n * HOUR);
    assert_eq!(total, Amount { gpus: hours(8 + 2), runs: hours(4 + 2 + 1), jobs: 2, attempts: 3 });
    let first = Amount { gpus: hours(8), runs: hours(5), jobs: 1, attempts: 2 };
    assert_eq!(by_user[0], (("user-1".to_owned(), None), first));
    assert_eq!(by_user.len(), 2);
}

#[test]
fn groups_are_by_name_and_a_job_is_in_the_group_of_each_of_its_labels() {
    let two = Labels([("team".to_owned(), "nlp".to_owned()), ("zone".to_owned(), "a".to_owned())].into());
    let runs = [Run { labels: two, ..run(1, 1, 1, 0, Some(4)) }, run(5, 2, 1, 0, Some(3))];
    let names =
        |by| -> Vec<String> { used(&runs, window(0, 10), by).1.into_iter().map(|((name, _), _)| name).collect() };
    assert_eq!(names(By::Label), ["team=nlp", "zone=a", ""]);
    assert_eq!(names(By::Config), ["digits"]);
    assert_eq!(used(&runs, window(0, 10), By::Worker).1[0].0, ("worker-1".to_owned(), Some(worker(1))));
}

#[test]
fn waits_are_of_those_that_began_inside() {
    let wait = |submitted, started: Option<i64>| Wait {
        submitted: Timestamp(submitted),
        offered: started.map(Timestamp),
        started: started.map(Timestamp),
        ended: None,
    };
    let all = [wait(0, Some(5)), wait(0, Some(15)), wait(8, Some(12)), wait(9, Some(20)), wait(9, None)];
    let waits = waits(&all, window(10, 20));
    assert_eq!(waits, [Millis(4), Millis(15)]);
    assert_eq!((percentile(&waits, 50), percentile(&waits, 95)), (Some(Millis(4)), Some(Millis(15))));
    assert_eq!(percentile(&[], 50), None);
    assert_eq!(percentile(&(1..=100).map(Millis).collect::<Vec<_>>(), 95), Some(Millis(95)));
    assert_eq!((all[0].over(), all[4].over()), (Some(Timestamp(5)), None));
}

#[test]
fn the_week_begins_on_monday_and_days_at_midnight() {
    // 2024-01-15 was a Monday.
    let monday = Timestamp::parse_rfc3339("2024-01-15T00:00:00Z").expect("a moment").0;
    let window = window(monday + 30 * 60_000, monday + 26 * HOUR);
    let mut calendar = Calendar::of(window);
    assert_eq!(calendar.days.len(), 2);
    calendar.add((window.since, window.until), 2);
    assert_eq!((calendar.week[0], calendar.week[1]), (Millis(HOUR), Millis(2 * HOUR)));
    assert_eq!((calendar.week[25], calendar.week[26]), (Millis(2 * HOUR), Millis(0)));
    assert_eq!(calendar.days[1], (Timestamp(monday + 24 * HOUR), Millis(4 * HOUR)));
}

#[test]
fn who_was_there_and_who_could_have_taken_a_job() {
    let registered = Change::Registered { gpus: 4, unfit: false };
    let changes = [
        (0, registered),
        (10, Change::Online),
        (30, Change::Drained),
        (40, Change::Resumed),
        (50, Change::Fitness { unfit: true }),
        (60, Change::Fitness { unfit: false }),
        (70, Change::Connecting),
        (80, Change::Gone),
        (90, Change::Online),
    ];
    let changes = changes.map(|(at, change)| (Timestamp(at), worker(1), change));
    let found = &attendance(changes, window(5, 100))[&worker(1)];
    let there: Spans = found.there.iter().map(|(span, _)| *span).collect();
    let span = |from, until| (Timestamp(from), Timestamp(until));
    assert_eq!(there, [span(5, 80), span(90, 100)].into_iter().collect());
    assert!(found.there.iter().all(|(_, gpus)| *gpus == 4));
    let open: Spans = found.open.iter().copied().collect();
    assert_eq!(open, [span(10, 30), span(40, 50), span(60, 70), span(90, 100)].into_iter().collect());
    let busy = [(worker(1), [span(15, 45)].into_iter().collect())].into();
    let idle = idle(&BTreeMap::from([(worker(1), found.clone())]), &busy);
    assert_eq!(idle, [span(10, 15), span(45, 50), span(60, 70), span(90, 100)].into_iter().collect());
}

fn some_spans() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((0_i64..60, 0_i64..60), 0..8)
}

fn as_spans(spans: &[(i64, i64)]) -> Spans {
    spans.iter().map(|(from, until)| (Timestamp(*from), Timestamp(*until))).collect()
}

fn moments(spans: &[(i64, i64)]) -> BTreeSet<i64> {
    spans.iter().flat_map(|(from, until)| *from..*until).collect()
}

fn moments_of(spans: &Spans) -> BTreeSet<i64> {
    spans.iter().flat_map(|(from, until)| from.0..until.0).collect()
}

proptest! {
    #[test]
    fn spans_are_sets_of_moments(a in some_spans(), b in some_spans()) {
        let (x, y) = (as_spans(&a), as_spans(&b));
        let (p, q) = (moments(&a), moments(&b));
        prop_assert_eq!(moments_of(&x.and(&y)), p.intersection(&q).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(moments_of(&x.without(&y)), p.difference(&q).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(x.total().0, i64::try_from(p.len()).expect("few"));
        let ends: Vec<_> = x.iter().collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "they do not touch: {:?}", ends);
    }

    #[test]
    fn whatever_it_is_grouped_by_it_is_the_same_in_all(
        runs in prop::collection::vec((1_u8..20, 0_u8..4, 0_u32..9, 0..90 * HOUR, prop::option::of(0..40 * HOUR)), 0..12),
        (since, long) in (0..90 * HOUR, 1..60 * HOUR),
    ) {
        let window = window(since, since + long);
        let runs: Vec<Run> = runs
            .into_iter()
            .map(|(job, on, gpus, started, lasts)| run(job, on, gpus, started, lasts.map(|lasts| started + lasts)))
            .collect();
        let (total, _) = used(&runs, window, By::User);
        for by in [By::User, By::Label, By::Worker, By::Config] {
            let (again, groups) = used(&runs, window, by);
            prop_assert_eq!(again, total);
            // Each of these jobs asks for one label at most.
            prop_assert_eq!(groups.iter().map(|(_, amount)| amount.gpus.0).sum::<i64>(), total.gpus.0);
            prop_assert_eq!(groups.iter().map(|(_, amount)| amount.attempts).sum::<u64>(), total.attempts);
            prop_assert!(groups.windows(2).all(|pair| pair[0].1.gpus >= pair[1].1.gpus));
        }
        // Windows side by side have together what one over both has.
        let (left, right) = (super::Window { until: Timestamp(since + long / 2), ..window }, super::Window { since: Timestamp(since + long / 2), ..window });
        let halves = used(&runs, left, By::User).0.gpus.0 + used(&runs, right, By::User).0.gpus.0;
        prop_assert_eq!(halves, total.gpus.0);
        // And the calendar loses nothing.
        let mut calendar = Calendar::of(window);
        for run in &runs {
            if let Some(part) = run.part(window) {
                calendar.add(part, run.gpus);
            }
        }
        prop_assert_eq!(calendar.days.iter().map(|(_, time)| time.0).sum::<i64>(), total.gpus.0);
        prop_assert_eq!(calendar.week.iter().map(|time| time.0).sum::<i64>(), total.gpus.0);
    }
}
