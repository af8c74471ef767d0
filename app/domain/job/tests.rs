//! Tables for single steps, and random lives for the invariants.

use proptest::prelude::*;

use super::transitions::SLACK;
use super::*;
use crate::domain::fixtures::{LEASE, job_id, spec};

const NOW: Timestamp = Timestamp(1_000_000);

fn worker(n: u8) -> WorkerId {
    WorkerId::new(NOW, [n; 10])
}

fn queued() -> Job {
    Job::submitted(JobId::new(NOW, [9; 10]), spec(Demand::default()), NOW, "ada".to_owned())
}

fn offered() -> Job {
    queued().offered(NOW, worker(1), vec!["GPU-1".to_owned()], Timestamp(NOW.0 + 30_000)).expect("it waits")
}

fn after(job: Job, report: Report) -> Job {
    job.reported(NOW, &worker(1), Attempt(1), report).expect("the attempt is current")
}

fn failed() -> Report {
    Report::Failed { exit_code: Some(1), error: "CUDA out of memory".to_owned() }
}

fn requeue() -> Report {
    Report::Requeue { error: "spot notice".to_owned() }
}

fn name(job: &Job) -> &'static str {
    job.state.as_str()
}

#[test]
fn reports_row_by_row() {
    let starting = || after(offered(), Report::Starting);
    let running = || after(starting(), Report::Running);
    let cancelling = || running().cancelled(NOW).expect("it runs");
    let lost = || running().lost(NOW, Loss::WorkerOffline, LEASE);
    let evicted = || after(running(), Report::Evicted);
    let completed = || after(running(), Report::Completed);
    let dead = || after(running(), failed());
    let cancelled = || after(cancelling(), Report::Cancelled);
    // Columns: starting, running, completed, failed, cancelled, requeue, evicted. `!` is a refusal.
    let rows: [(&str, Job, [&str; 7]); 10] = [
        ("offered", offered(), ["starting", "running", "completed", "failed", "queued", "queued", "queued"]),
        ("starting", starting(), ["starting", "running", "completed", "failed", "queued", "queued", "queued"]),
        ("running", running(), ["running", "running", "completed", "failed", "queued", "queued", "queued"]),
        (
            "cancelling",
            cancelling(),
            ["cancelling", "cancelling", "cancelled", "cancelled", "cancelled", "cancelled", "cancelled"],
        ),
        ("lost", lost(), ["starting", "running", "completed", "failed", "queued", "queued", "queued"]),
        ("evicted", evicted(), ["starting", "running", "completed", "failed", "queued", "queued", "queued"]),
        ("completed", completed(), ["!", "!", "completed", "!", "!", "!", "!"]),
        ("failed", dead(), ["!", "!", "!", "failed", "!", "!", "!"]),
        ("cancelled", cancelled(), ["!", "!", "!", "!", "cancelled", "!", "!"]),
        (
            "expired",
            offered().offer_expired(Timestamp(NOW.0 + 30_000)),
            ["starting", "running", "completed", "failed", "queued", "queued", "queued"],
        ),
    ];
    for (from, job, expected) in rows {
        let reports = [
            Report::Starting,
            Report::Running,
            Report::Completed,
            failed(),
            Report::Cancelled,
            requeue(),
            Report::Evicted,
        ];
        for (report, expected) in reports.into_iter().zip(expected) {
            let label = format!("{from} then {report:?}");
            match job.clone().reported(NOW, &worker(1), Attempt(1), report) {
                Ok(next) => assert_eq!(name(&next), expected, "{label}"),
                Err(refused) => assert_eq!((expected, refused), ("!", Refused::Ended), "{label}"),
            }
        }
    }
}

#[test]
fn a_repeat_changes_nothing() {
    let running = after(offered(), Report::Running);
    assert_eq!(running.clone().reported(Timestamp(9), &worker(1), Attempt(1), Report::Starting), Ok(running.clone()));
    assert_eq!(running.clone().reported(Timestamp(9), &worker(1), Attempt(1), Report::Running), Ok(running.clone()));
    let completed = after(running, Report::Completed);
    assert_eq!(completed.clone().reported(Timestamp(9), &worker(1), Attempt(1), Report::Completed), Ok(completed));
}

#[test]
fn foreign_and_old_attempts_are_fenced_out() {
    assert_eq!(queued().reported(NOW, &worker(1), Attempt(1), Report::Running), Err(Refused::NotYours));
    assert_eq!(offered().reported(NOW, &worker(2), Attempt(1), Report::Running), Err(Refused::NotYours));
    assert_eq!(offered().reported(NOW, &worker(1), Attempt(2), Report::Running), Err(Refused::NotYours));
    let again = after(offered(), Report::Running)
        .lost(NOW, Loss::AgentForgot, LEASE)
        .offered(NOW, worker(2), vec![], NOW)
        .expect("it waits");
    assert_eq!(
        again.reported(NOW, &worker(1), Attempt(1), Report::Completed),
        Err(Refused::OldAttempt { current: Attempt(2) })
    );
}

#[test]
fn a_lost_attempt_takes_its_job_back_while_nobody_else_has_it() {
    let lost = after(offered(), Report::Running).lost(NOW, Loss::WorkerOffline, LEASE);
    let back = after(lost.clone(), Report::Running);
    assert_eq!(back.live_lease().map(|lease| lease.attempt), Some(Attempt(1)));
    assert_eq!(back.losses, 1);
    let lost_twice = after(lost, requeue());
    assert_eq!(lost_twice.losses, 1, "one attempt is one loss");
}

#[test]
fn retries_run_out() {
    let mut job = queued();
    for attempt in 1..=4 {
        job = job.offered(NOW, worker(1), vec![], NOW).expect("it waits");
        job = job.reported(NOW, &worker(1), Attempt(attempt), Report::Running).expect("current");
        job = job.lost(NOW, Loss::WorkerOffline, LEASE);
        assert_eq!(job.losses, attempt);
    }
    assert!(matches!(job.state, State::Failed { failure: Failure::Lost(Loss::WorkerOffline), .. }));
}

#[test]
fn a_trainers_failure_is_retried_only_if_the_submit_said_so() {
    let mut job = offered();
    job.spec.retry_on_failure = true;
    let waiting = after(job, failed());
    assert!(matches!(waiting.state, State::Queued { not_before: Some(moment), .. } if moment.0 == NOW.0 + 10_000));
}

#[test]
fn cancel_row_by_row() {
    let cancel = |job: Job| job.cancelled(NOW).map(|job| name(&job));
    assert_eq!(cancel(queued()), Ok("cancelled"));
    assert_eq!(cancel(offered()), Ok("cancelled"));
    assert_eq!(cancel(after(offered(), Report::Starting)), Ok("cancelling"));
    assert_eq!(cancel(after(offered(), Report::Running)), Ok("cancelling"));
    let cancelling = after(offered(), Report::Running).cancelled(NOW).expect("it runs");
    assert_eq!(cancelling.clone().cancelled(Timestamp(5)), Ok(cancelling.clone()));
    assert_eq!(name(&cancelling.clone().lost(NOW, Loss::WorkerOffline, LEASE)), "cancelled");
    assert_eq!(cancel(after(cancelling, Report::Cancelled)), Err(Refused::Ended));
    assert_eq!(cancel(after(offered(), Report::Completed)), Err(Refused::Ended));
    assert_eq!(cancel(after(offered(), failed())), Err(Refused::Ended));
}

#[test]
fn an_offer_expires_at_its_time_and_not_before() {
    let until = Timestamp(NOW.0 + 30_000);
    assert_eq!(name(&offered().offer_expired(Timestamp(until.0 - 1))), "offered");
    let expired = offered().offer_expired(until);
    assert_eq!((name(&expired), expired.losses, expired.since()), ("queued", 0, until));
    assert_eq!(expired.last_lease().map(|lease| lease.attempt), Some(Attempt(1)));
    assert_eq!(expired.live_lease(), None);
    let running = after(offered(), Report::Running);
    assert_eq!(running.clone().offer_expired(Timestamp(i64::MAX)), running);
    assert_eq!(name(&offered().offer_withdrawn(NOW)), "queued");
    assert_eq!(running.clone().offer_withdrawn(NOW), running);
}

#[test]
fn only_a_waiting_job_is_offered() {
    assert_eq!(offered().offered(NOW, worker(2), vec![], NOW), Err(Refused::NotQueued));
    let completed = after(offered(), Report::Completed);
    assert_eq!(completed.offered(NOW, worker(2), vec![], NOW), Err(Refused::Ended));
}

#[test]
fn an_eviction_is_no_loss_and_needs_no_wait() {
    let evicted = after(after(offered(), Report::Running), Report::Evicted);
    assert_eq!(evicted.losses, 0);
    let State::Queued { not_before, previous: Some(previous), .. } = &evicted.state else { panic!("it waits") };
    assert_eq!((*not_before, &previous.loss), (None, &Some(Loss::Evicted)));
    let lost = after(offered(), Report::Running).lost(NOW, Loss::WorkerOffline, LEASE);
    assert_eq!(after(lost.clone(), Report::Evicted), lost, "what was lost before stays lost");
}

#[test]
fn targets_have_their_words() {
    assert_eq!([Target::Auto, Target::Worker, Target::Local].map(Target::as_str), ["auto", "worker", "local"]);
}

#[test]
fn a_persons_retry_is_a_new_job() {
    let ended = Job { priority: 20, ..after(offered(), failed()) };
    let again = ended.retried(JobId::new(NOW, [8; 10]), Timestamp(7), "bob".to_owned(), 50).expect("it has ended");
    assert_eq!((name(&again), again.attempt, again.losses), ("queued", Attempt(0), 0));
    assert_eq!((again.priority, again.retry_of.as_ref(), &again.spec), (20, Some(&ended.id), &ended.spec));
    assert_eq!((again.submitted_by.as_str(), again.submitted_at), ("bob", Timestamp(7)));
    for living in [queued(), offered(), after(offered(), Report::Running)] {
        assert_eq!(living.retried(JobId::new(NOW, [8; 10]), NOW, "bob".to_owned(), 50), Err(Refused::NotEnded));
    }
}

#[test]
fn priority_changes_until_the_end() {
    for living in [queued(), offered(), after(offered(), Report::Running)] {
        let urgent = living.clone().prioritised(50).expect("it lives");
        assert_eq!(urgent, Job { priority: 50, ..living });
    }
    assert_eq!(after(offered(), Report::Completed).prioritised(50), Err(Refused::Ended));
}

#[derive(Debug, Clone)]
enum Command {
    Offer(u8),
    Expire,
    Cancel,
    Lose,
    Report(u8, u32, Report),
}

fn command() -> impl Strategy<Value = Command> {
    let report = prop_oneof![
        Just(Report::Starting),
        Just(Report::Running),
        Just(Report::Completed),
        Just(failed()),
        Just(Report::Cancelled),
        Just(requeue()),
        Just(Report::Evicted),
    ];
    prop_oneof![
        3 => (0_u8..3).prop_map(Command::Offer),
        1 => Just(Command::Expire),
        1 => Just(Command::Cancel),
        1 => Just(Command::Lose),
        6 => (0_u8..3, 0_u32..6, report).prop_map(|(w, a, r)| Command::Report(w, a, r)),
    ]
}

fn apply(job: Job, command: Command, now: Timestamp) -> Job {
    let before = job.clone();
    match command {
        Command::Offer(w) => job.offered(now, worker(w), vec![], Timestamp(now.0 + 5)).unwrap_or(before),
        Command::Expire => job.offer_expired(now),
        Command::Cancel => job.cancelled(now).unwrap_or(before),
        Command::Lose => job.lost(now, Loss::WorkerOffline, LEASE),
        Command::Report(w, a, r) => job.reported(now, &worker(w), Attempt(a), r).unwrap_or(before),
    }
}

proptest! {
    #[test]
    fn invariants_hold_through_any_life(commands in prop::collection::vec(command(), 0..60), retry: bool) {
        let mut job = queued();
        job.spec.retry_on_failure = retry;
        for (tick, command) in (0_i64..).zip(commands) {
            let before = job.clone();
            let reported = matches!(&command, Command::Report(..));
            job = apply(job, command.clone(), Timestamp(NOW.0 + tick));
            prop_assert!(job.attempt >= before.attempt, "attempts only grow (I1)");
            prop_assert!(job.losses <= job.spec.max_retries + 1);
            if before.has_ended() {
                prop_assert_eq!(&job, &before, "a terminal state never changes (I2)");
            }
            if let (true, Some(lease)) = (reported && job != before, job.last_lease()) {
                let Command::Report(w, a, _) = &command else { unreachable!() };
                prop_assert_eq!(lease.attempt, job.attempt, "only the newest attempt has effects");
                prop_assert_eq!((&lease.worker, lease.attempt), (&worker(*w), Attempt(*a)));
            }
            if matches!(before.state, State::Cancelling { .. }) {
                prop_assert!(
                    matches!(job.state, State::Cancelling { .. } | State::Cancelled { .. }),
                    "a cancelled job never completes"
                );
            }
            if let Some(lease) = job.live_lease() {
                prop_assert_eq!(lease.attempt, job.attempt, "the live lease is the newest attempt's");
            }
        }
    }
}

#[test]
fn what_trains_longer_than_it_may_has_failed_when_it_was_stopped() {
    let mut running = after(offered(), Report::Running);
    running.spec.max_runtime = Some(Millis::seconds(60));
    let at = |second: i64, report: Report| {
        running.clone().reported(NOW + Millis::seconds(second), &worker(1), Attempt(1), report).expect("current")
    };
    let over_time = Failure::OverTime { allowed: Millis::seconds(60) };
    for report in [Report::Cancelled, Report::Requeue { error: String::new() }] {
        assert!(matches!(at(59, report.clone()).state, State::Queued { .. }));
        let stopped = at(60, report.clone());
        assert!(matches!(&stopped.state, State::Failed { failure, .. } if *failure == over_time));
        assert_eq!(stopped.clone().reported(NOW, &worker(1), Attempt(1), report), Ok(stopped));
    }
    assert!(matches!(at(60, Report::Completed).state, State::Completed { .. }), "it was quicker than the stop");
    assert_eq!(running.overdue(NOW + Millis::seconds(59)), None);
    assert_eq!(queued().overdue(Timestamp(i64::MAX)), None);
}

#[test]
fn an_exclusive_job_is_kept_back_until_a_trainer_that_nobody_hears_of_must_have_stopped() {
    let mut running = after(offered(), Report::Running);
    running.spec.exclusive = true;
    let lost = running.clone().lost(NOW, Loss::WorkerOffline, LEASE);
    assert_eq!((lost.kept_back, lost.due()), (Some(NOW + LEASE), Some(NOW + LEASE)), "longer than the back-off");
    let later = Timestamp(NOW.0 + 1_000);
    let heard = lost.clone().answered(later, LEASE);
    assert_eq!(heard.kept_back, Some(later + LEASE + SLACK), "its agent may take that for a renewal");
    assert_eq!(heard.clone().answered(later, LEASE), heard, "not each time");
    assert_eq!(heard.cancelled(NOW).expect("it waits").kept_back, Some(later + LEASE + SLACK));
    for word in [Report::Running, Report::Completed, requeue(), Report::Evicted] {
        let said = lost.clone().reported(later, &worker(1), Attempt(1), word.clone()).expect("current");
        assert_eq!(said.kept_back, None, "{word:?}: its agent knows");
    }
    let cancelled = running.clone().cancelled(NOW).expect("it runs").lost(NOW, Loss::AgentForgot, LEASE);
    let again = cancelled.retried(job_id(2), later, "ada".to_owned(), 50).expect("it has ended");
    assert_eq!((name(&cancelled), again.due()), ("cancelled", Some(NOW + LEASE)));
    let plain = after(offered(), Report::Running).lost(NOW, Loss::WorkerOffline, LEASE);
    assert_eq!((plain.kept_back, plain.clone().answered(later, LEASE)), (None, plain));
}
