//! Tests of usage, compared with counting each millisecond.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::calendar::{UTC, UsageCalendar};
use super::presence::{CapacityChange, FleetCapacity, PresenceChange, WorkerIndex, fleet_capacity};
use super::spans::TimeSpans;
use super::*;

const HOUR: i64 = 3_600_000;

fn worker(n: u8) -> WorkerId {
    WorkerId::new(Timestamp(0), [n; 10])
}

fn run(job: u8, worker_number: u8, gpus: u32, started: i64, ended: Option<i64>) -> AttemptUsage {
    let labels = Labels([("team".to_owned(), format!("t{}", job % 2))].into());
    AttemptUsage {
        job: JobId::new(Timestamp(0), [job; 10]),
        user: format!("user-{}", job % 3),
        config_name: "digits".to_owned(),
        labels: if job.is_multiple_of(5) { Labels::default() } else { labels },
        worker: worker(worker_number),
        worker_name: format!("worker-{worker_number}"),
        gpus,
        offered_at: Timestamp(started - 1),
        started_at: Some(Timestamp(started)),
        ended_at: ended.map(Timestamp),
    }
}

fn window(since: i64, until: i64) -> TimeWindow {
    TimeWindow { since: Timestamp(since), until: Timestamp(until) }
}

#[test]
fn attempt_counts_for_its_part_in_the_period() {
    let runs = [
        run(1, 1, 2, 0, Some(10 * HOUR)),       // five hours are in the period
        run(2, 1, 1, 7 * HOUR, None),           // runs until now
        run(3, 2, 8, 0, Some(5 * HOUR)),        // ended before the period
        run(4, 2, 8, 9 * HOUR, Some(9 * HOUR)), // took no time
        AttemptUsage { started_at: None, ..run(6, 1, 8, 6, None) }, // only offered
        run(1, 2, 0, 8 * HOUR, Some(9 * HOUR)), // another attempt of the first, without GPUs
    ];
    let (total, by_user) = summarize_usage(&runs, window(5 * HOUR, 9 * HOUR), UsageGrouping::User);
    let hours = |n: i64| Millis(n * HOUR);
    assert_eq!(total, UsageAmount { gpu_time: hours(8 + 2), run_time: hours(4 + 2 + 1), jobs: 2, attempts: 3 });
    let first = UsageAmount { gpu_time: hours(8), run_time: hours(5), jobs: 1, attempts: 2 };
    assert_eq!(by_user[0], (("user-1".to_owned(), None), first));
    assert_eq!(by_user.len(), 2);
}

#[test]
fn groups_are_by_name_and_each_label_counts() {
    let two_labels = Labels([("team".to_owned(), "nlp".to_owned()), ("zone".to_owned(), "a".to_owned())].into());
    let runs = [AttemptUsage { labels: two_labels, ..run(1, 1, 1, 0, Some(4)) }, run(5, 2, 1, 0, Some(3))];
    let names = |by| -> Vec<String> {
        summarize_usage(&runs, window(0, 10), by).1.into_iter().map(|((name, _), _)| name).collect()
    };
    assert_eq!(names(UsageGrouping::Label), ["team=nlp", "zone=a", ""]);
    assert_eq!(names(UsageGrouping::Config), ["digits"]);
    assert_eq!(
        summarize_usage(&runs, window(0, 10), UsageGrouping::Worker).1[0].0,
        ("worker-1".to_owned(), Some(worker(1)))
    );
}

#[test]
fn waits_count_for_jobs_started_in_the_period() {
    let wait = |submitted, started: Option<i64>| JobWait {
        submitted_at: Timestamp(submitted),
        offered_at: started.map(Timestamp),
        started_at: started.map(Timestamp),
        ended_at: None,
    };
    let all = [wait(0, Some(5)), wait(0, Some(15)), wait(8, Some(12)), wait(9, Some(20)), wait(9, None)];
    let waits = wait_times(&all, window(10, 20));
    assert_eq!(waits, [Millis(4), Millis(15)]);
    assert_eq!((percentile(&waits, 50), percentile(&waits, 95)), (Some(Millis(4)), Some(Millis(15))));
    assert_eq!(percentile(&[], 50), None);
    assert_eq!(percentile(&(1..=100).map(Millis).collect::<Vec<_>>(), 95), Some(Millis(95)));
    assert_eq!((all[0].waited_until(), all[4].waited_until()), (Some(Timestamp(5)), None));
}

#[test]
fn week_begins_on_monday_and_days_at_midnight() {
    // 2024-01-15 was a Monday.
    let monday = Timestamp::parse_rfc3339("2024-01-15T00:00:00Z").expect("a time").0;
    let window = window(monday + 30 * 60_000, monday + 26 * HOUR);
    let mut calendar = UsageCalendar::new(window, UTC);
    assert_eq!(calendar.days.len(), 2);
    calendar.add((window.since, window.until), 2);
    assert_eq!((calendar.week[0], calendar.week[1]), (Millis(HOUR), Millis(2 * HOUR)));
    assert_eq!((calendar.week[25], calendar.week[26]), (Millis(2 * HOUR), Millis(0)));
    assert_eq!(calendar.days[1], (Timestamp(monday + 24 * HOUR), Millis(4 * HOUR)));
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).expect("a time")
}

#[test]
fn days_and_hours_use_the_time_zone() {
    let kolkata = |_: Timestamp| Millis(11 * HOUR / 2);
    // From 01:00 on a Monday to 01:00 on Tuesday.
    let window = super::TimeWindow { since: at("2024-01-14T19:30:00Z"), until: at("2024-01-15T19:30:00Z") };
    let mut calendar = UsageCalendar::new(window, &kolkata);
    calendar.add((window.since, window.until), 2);
    let days = [("2024-01-14T18:30:00Z", 46), ("2024-01-15T18:30:00Z", 2)];
    assert_eq!(calendar.days, days.map(|(day, hours)| (at(day), Millis(hours * HOUR))));
    assert!(calendar.week[1..25].iter().all(|hour| *hour == Millis(2 * HOUR)));
    assert_eq!((calendar.week[0], calendar.week[25]), (Millis(0), Millis(0)));
}

#[test]
fn day_with_a_clock_change_has_its_own_length() {
    // As in Berlin in spring and autumn, and on Lord Howe Island, where the change is half an hour.
    for (change, before, after, hours, hour, expected) in [
        ("2024-03-31T01:00:00Z", 2, 4, 46, 2, 0),
        ("2024-10-27T01:00:00Z", 4, 2, 50, 2, 4),
        ("2024-04-06T15:00:00Z", 22, 21, 49, 1, 3),
    ] {
        let changed = at(change);
        let utc_offset = move |time: Timestamp| Millis(if time < changed { before } else { after } * HOUR / 2);
        let midnight = Timestamp((changed.0 + before * HOUR / 2).div_euclid(24 * HOUR) * 24 * HOUR - before * HOUR / 2);
        let until = Timestamp(midnight.0 + hours * HOUR / 2);
        let window = super::TimeWindow { since: midnight, until };
        let mut calendar = UsageCalendar::new(window, &utc_offset);
        calendar.add((midnight, until), 2);
        assert_eq!(calendar.days, [(midnight, Millis(hours * HOUR))], "{change}");
        assert_eq!(calendar.week[144 + hour], Millis(expected * HOUR), "{change}: Sunday");
    }
}

#[test]
fn day_begins_at_a_clock_change_over_midnight() {
    let changed = at("2018-11-04T03:00:00Z");
    let utc_offset = move |time: Timestamp| Millis(if time < changed { -3 } else { -2 } * HOUR);
    let window = super::TimeWindow { since: at("2018-11-04T02:00:00Z"), until: at("2018-11-04T04:00:00Z") };
    let mut calendar = UsageCalendar::new(window, &utc_offset);
    calendar.add((window.since, window.until), 1);
    assert_eq!(calendar.days, [(at("2018-11-03T03:00:00Z"), Millis(HOUR)), (changed, Millis(HOUR))]);
}

#[test]
fn presence_and_availability_of_workers() {
    let registered = PresenceChange::Registered { gpus: 4, unhealthy: false };
    let changes = [
        (0, registered),
        (10, PresenceChange::Online),
        (30, PresenceChange::Drained),
        (40, PresenceChange::Resumed),
        (50, PresenceChange::HostHealth { unhealthy: true }),
        (60, PresenceChange::HostHealth { unhealthy: false }),
        (70, PresenceChange::Connecting),
        (80, PresenceChange::Offline),
        (90, PresenceChange::Online),
    ];
    let jobs = [(15, CapacityChange::JobAdded), (45, CapacityChange::JobRemoved)];
    let mut changes: Vec<_> =
        changes.map(|(at, change)| (at, CapacityChange::Presence(change))).into_iter().chain(jobs).collect();
    changes.sort_by_key(|(at, _)| *at);
    let changes = changes.into_iter().map(|(at, change)| (Timestamp(at), 3, change));
    let FleetCapacity { connected, idle } = fleet_capacity(changes, window(5, 100));
    let span = |from, until| (Timestamp(from), Timestamp(until));
    assert!(connected.iter().all(|(_, gpus)| *gpus == 4));
    let connected: TimeSpans = connected.iter().map(|(span, _)| *span).collect();
    assert_eq!(connected, [span(5, 80), span(90, 100)].into_iter().collect());
    assert_eq!(idle, [span(10, 15), span(45, 50), span(60, 70), span(90, 100)].into_iter().collect());
}

fn some_spans() -> impl Strategy<Value = Vec<(i64, i64)>> {
    prop::collection::vec((0_i64..60, 0_i64..60), 0..8)
}

fn as_spans(spans: &[(i64, i64)]) -> TimeSpans {
    spans.iter().map(|(from, until)| (Timestamp(*from), Timestamp(*until))).collect()
}

fn millis(spans: &[(i64, i64)]) -> BTreeSet<i64> {
    spans.iter().flat_map(|(from, until)| *from..*until).collect()
}

fn millis_of_spans(spans: &TimeSpans) -> BTreeSet<i64> {
    spans.iter().flat_map(|(from, until)| from.0..until.0).collect()
}

fn some_capacity_change() -> impl Strategy<Value = CapacityChange> {
    let presence = prop_oneof![
        4 => (1_u32..4, any::<bool>()).prop_map(|(gpus, unhealthy)| PresenceChange::Registered { gpus, unhealthy }),
        4 => Just(PresenceChange::Online),
        1 => Just(PresenceChange::Connecting),
        1 => Just(PresenceChange::Offline),
        1 => Just(PresenceChange::Drained),
        1 => Just(PresenceChange::Resumed),
        1 => any::<bool>().prop_map(|unhealthy| PresenceChange::HostHealth { unhealthy }),
    ];
    prop_oneof![
        3 => presence.prop_map(CapacityChange::Presence),
        1 => Just(CapacityChange::JobAdded),
        1 => Just(CapacityChange::JobRemoved),
    ]
}

proptest! {
    /// The capacity of a fleet is the sum of the capacities of its workers.
    #[test]
    fn capacities_of_workers_add_up(
        mut changes in prop::collection::vec((0_i64..60, 0_u32..3, some_capacity_change()), 0..20),
        (since, duration) in (0_i64..50, 1_i64..20),
    ) {
        changes.sort_by_key(|(at, ..)| *at);
        let window = window(since, since + duration);
        let capacity = |only: Option<WorkerIndex>| {
            let own = changes.iter().filter(|(_, worker, _)| only.is_none_or(|only| only == *worker));
            fleet_capacity(own.map(|(at, worker, change)| (Timestamp(*at), *worker, *change)), window)
        };
        let gpus_at = |capacity: &FleetCapacity, at: i64| -> u64 {
            let covers = |span: &(Timestamp, Timestamp)| (span.0.0..span.1.0).contains(&at);
            capacity.connected.iter().filter(|(span, _)| covers(span)).map(|(_, gpus)| gpus).sum()
        };
        let (fleet, workers) = (capacity(None), [0, 1, 2].map(|worker| capacity(Some(worker))));
        for at in since..since + duration {
            prop_assert_eq!(gpus_at(&fleet, at), workers.iter().map(|worker| gpus_at(worker, at)).sum::<u64>());
        }
        let idle: TimeSpans = workers.iter().flat_map(|worker| worker.idle.iter().collect::<Vec<_>>()).collect();
        prop_assert_eq!(&fleet.idle, &idle);
        prop_assert!(idle.iter().all(|(from, until)| window.since <= from && until <= window.until));
    }

    #[test]
    fn spans_behave_like_sets(a in some_spans(), b in some_spans()) {
        let (x, y) = (as_spans(&a), as_spans(&b));
        let (p, q) = (millis(&a), millis(&b));
        prop_assert_eq!(millis_of_spans(&x.intersection(&y)), p.intersection(&q).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(x.total_duration().0, i64::try_from(p.len()).expect("few"));
        let ends: Vec<_> = x.iter().collect();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "they do not touch: {:?}", ends);
    }

    #[test]
    fn totals_are_the_same_for_every_grouping(
        runs in prop::collection::vec((1_u8..20, 0_u8..4, 0_u32..9, 0..90 * HOUR, prop::option::of(0..40 * HOUR)), 0..12),
        (since, duration) in (0..90 * HOUR, 1..60 * HOUR),
    ) {
        let window = window(since, since + duration);
        let runs: Vec<AttemptUsage> = runs
            .into_iter()
            .map(|(job, worker_number, gpus, started, run_time)| {
                run(job, worker_number, gpus, started, run_time.map(|run_time| started + run_time))
            })
            .collect();
        let (total, _) = summarize_usage(&runs, window, UsageGrouping::User);
        for by in [UsageGrouping::User, UsageGrouping::Label, UsageGrouping::Worker, UsageGrouping::Config] {
            let (grouped_total, groups) = summarize_usage(&runs, window, by);
            prop_assert_eq!(grouped_total, total);
            // Each of these jobs requires at most one label.
            prop_assert_eq!(groups.iter().map(|(_, amount)| amount.gpu_time.0).sum::<i64>(), total.gpu_time.0);
            prop_assert_eq!(groups.iter().map(|(_, amount)| amount.attempts).sum::<u64>(), total.attempts);
            prop_assert!(groups.windows(2).all(|pair| pair[0].1.gpu_time >= pair[1].1.gpu_time));
        }
        // Two adjacent windows together have the usage of one that covers both.
        let middle = Timestamp(since + duration / 2);
        let halves = [super::TimeWindow { until: middle, ..window }, super::TimeWindow { since: middle, ..window }];
        let halves = halves.map(|half| summarize_usage(&runs, half, UsageGrouping::User).0.gpu_time.0);
        prop_assert_eq!(halves[0] + halves[1], total.gpu_time.0);
        // And the calendar counts everything.
        let mut calendar = UsageCalendar::new(window, UTC);
        for run in &runs {
            if let Some(span) = run.clip_to(window) {
                calendar.add(span, run.gpus.into());
            }
        }
        prop_assert_eq!(calendar.days.iter().map(|(_, time)| time.0).sum::<i64>(), total.gpu_time.0);
        prop_assert_eq!(calendar.week.iter().map(|time| time.0).sum::<i64>(), total.gpu_time.0);
    }
}
