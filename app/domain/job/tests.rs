//! Tables for single transitions, and random sequences for the invariants.

use proptest::prelude::*;

use super::transitions::HOLD_SLACK;
use super::*;
use crate::domain::fixtures::{LEASE_DURATION, job_id, spec};
use crate::domain::ids::WorkerId;
use crate::domain::job_status::{CancelEffect, JobStatus};

const NOW: Timestamp = Timestamp(1_000_000);

fn worker(n: u8) -> WorkerId {
    WorkerId::new(NOW, [n; 10])
}

fn queued() -> Job {
    Job::submitted(JobId::new(NOW, [9; 10]), spec(Demand::default()), NOW, "ada".to_owned())
}

fn offered() -> Job {
    queued().offered(NOW, worker(1), vec!["GPU-1".to_owned()], Timestamp(NOW.0 + 30_000)).expect("queued")
}

fn after(job: Job, report: AttemptReport) -> Job {
    job.reported(NOW, &worker(1), AttemptNumber(1), report).expect("the attempt is current")
}

fn failed() -> AttemptReport {
    AttemptReport::Failed { exit_code: Some(1), error: "CUDA out of memory".to_owned() }
}

fn requeue() -> AttemptReport {
    AttemptReport::Requeue { error: "spot notice".to_owned() }
}

fn name(job: &Job) -> &'static str {
    job.state.as_str()
}

#[test]
fn report_transition_table() {
    let starting = || after(offered(), AttemptReport::Starting);
    let running = || after(starting(), AttemptReport::Running);
    let cancelling = || running().cancelled(NOW).expect("running");
    let lost = || running().lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
    let evicted = || after(running(), AttemptReport::Evicted);
    let completed = || after(running(), AttemptReport::Completed);
    let dead = || after(running(), failed());
    let cancelled = || after(cancelling(), AttemptReport::Cancelled);
    // Columns: starting, running, completed, failed, cancelled, requeue, evicted. `!` means rejected.
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
            AttemptReport::Starting,
            AttemptReport::Running,
            AttemptReport::Completed,
            failed(),
            AttemptReport::Cancelled,
            requeue(),
            AttemptReport::Evicted,
        ];
        for (report, expected) in reports.into_iter().zip(expected) {
            let label = format!("{from} then {report:?}");
            match job.clone().reported(NOW, &worker(1), AttemptNumber(1), report) {
                Ok(next) => assert_eq!(name(&next), expected, "{label}"),
                Err(rejected) => assert_eq!((expected, rejected), ("!", JobTransitionError::AlreadyEnded), "{label}"),
            }
        }
    }
}

#[test]
fn repeated_report_changes_nothing() {
    let running = after(offered(), AttemptReport::Running);
    assert_eq!(
        running.clone().reported(Timestamp(9), &worker(1), AttemptNumber(1), AttemptReport::Starting),
        Ok(running.clone())
    );
    assert_eq!(
        running.clone().reported(Timestamp(9), &worker(1), AttemptNumber(1), AttemptReport::Running),
        Ok(running.clone())
    );
    let completed = after(running, AttemptReport::Completed);
    assert_eq!(
        completed.clone().reported(Timestamp(9), &worker(1), AttemptNumber(1), AttemptReport::Completed),
        Ok(completed)
    );
}

#[test]
fn other_workers_and_old_attempts_are_rejected() {
    assert_eq!(
        queued().reported(NOW, &worker(1), AttemptNumber(1), AttemptReport::Running),
        Err(JobTransitionError::WrongWorker)
    );
    assert_eq!(
        offered().reported(NOW, &worker(2), AttemptNumber(1), AttemptReport::Running),
        Err(JobTransitionError::WrongWorker)
    );
    assert_eq!(
        offered().reported(NOW, &worker(1), AttemptNumber(2), AttemptReport::Running),
        Err(JobTransitionError::WrongWorker)
    );
    let again = after(offered(), AttemptReport::Running)
        .lost(NOW, AttemptLoss::UnknownToAgent, LEASE_DURATION)
        .offered(NOW, worker(2), vec![], NOW)
        .expect("queued");
    assert_eq!(
        again.reported(NOW, &worker(1), AttemptNumber(1), AttemptReport::Completed),
        Err(JobTransitionError::StaleAttempt { current: AttemptNumber(2) })
    );
}

#[test]
fn lost_attempt_is_recovered_until_the_next_offer() {
    let lost = after(offered(), AttemptReport::Running).lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
    let back = after(lost.clone(), AttemptReport::Running);
    assert_eq!(back.active_lease().map(|lease| lease.attempt), Some(AttemptNumber(1)));
    assert_eq!(back.losses, 1);
    let lost_twice = after(lost, requeue());
    assert_eq!(lost_twice.losses, 1, "one attempt is one loss");
}

#[test]
fn job_fails_after_its_last_retry() {
    let mut job = queued();
    for attempt in 1..=4 {
        job = job.offered(NOW, worker(1), vec![], NOW).expect("queued");
        job = job.reported(NOW, &worker(1), AttemptNumber(attempt), AttemptReport::Running).expect("current");
        job = job.lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
        assert_eq!(job.losses, attempt);
    }
    assert!(matches!(job.state, JobState::Failed { failure: JobFailure::Lost(AttemptLoss::WorkerOffline), .. }));
}

#[test]
fn trainer_failure_is_retried_only_on_request() {
    let mut job = offered();
    job.spec.retry_on_failure = true;
    let waiting = after(job, failed());
    assert!(
        matches!(waiting.state, JobState::Queued(Waiting { not_before: Some(moment), .. }) if moment.0 == NOW.0 + 10_000)
    );
}

#[test]
fn cancel_transition_table() {
    let cancel = |job: Job| job.cancelled(NOW).map(|job| name(&job));
    assert_eq!(cancel(queued()), Ok("cancelled"));
    assert_eq!(cancel(offered()), Ok("cancelled"));
    assert_eq!(cancel(after(offered(), AttemptReport::Starting)), Ok("cancelling"));
    assert_eq!(cancel(after(offered(), AttemptReport::Running)), Ok("cancelling"));
    let cancelling = after(offered(), AttemptReport::Running).cancelled(NOW).expect("running");
    assert_eq!(cancelling.clone().cancelled(Timestamp(5)), Ok(cancelling.clone()));
    assert_eq!(name(&cancelling.clone().lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION)), "cancelled");
    assert_eq!(cancel(after(cancelling, AttemptReport::Cancelled)), Err(JobTransitionError::AlreadyEnded));
    assert_eq!(cancel(after(offered(), AttemptReport::Completed)), Err(JobTransitionError::AlreadyEnded));
    assert_eq!(cancel(after(offered(), failed())), Err(JobTransitionError::AlreadyEnded));
}

/// A job in each status.
fn jobs_in_each_status() -> [Job; JobStatus::ALL.len()] {
    let starting = after(offered(), AttemptReport::Starting);
    let running = after(starting.clone(), AttemptReport::Running);
    let cancelling = running.clone().cancelled(NOW).expect("running");
    let completed = after(running.clone(), AttemptReport::Completed);
    let (dead, cancelled) = (after(running.clone(), failed()), after(cancelling.clone(), AttemptReport::Cancelled));
    [queued(), offered(), starting, running, cancelling, completed, dead, cancelled]
}

#[test]
fn facts_of_each_status_agree_with_its_state() {
    let jobs = jobs_in_each_status();
    assert_eq!(jobs.each_ref().map(|job| job.state.status()), JobStatus::ALL, "a job in each status");
    for job in jobs {
        let (status, later) = (job.state.status(), Timestamp(NOW.0 + 1));
        assert_eq!(job.has_ended(), status.is_terminal(), "{status:?}");
        assert_eq!(job.active_lease().is_some(), status.has_lease(), "{status:?}");
        let effect = match job.clone().cancelled(later) {
            Err(_) => CancelEffect::AlreadyEnded,
            Ok(after) if after == job => CancelEffect::AlreadyStopping,
            Ok(after) if after.has_ended() => CancelEffect::Ends,
            Ok(_) => CancelEffect::StopsTrainer,
        };
        assert_eq!(effect, status.cancel_effect(), "{status:?}");
    }
}

/// Whatever an exclusive job waits for, a trainer of it may run: on a host that the backup does not know, or because
/// the lost attempt was heard of.
#[test]
fn exclusive_job_that_waits_is_held_in_every_state() {
    for mut job in jobs_in_each_status() {
        let (status, later) = (job.state.status(), Timestamp(NOW.0 + 1));
        let waits = !status.has_lease() && !status.is_terminal();
        assert_eq!(job.clone().held_after_restore(NOW, LEASE_DURATION), job, "{status:?}: not exclusive");
        job.spec.exclusive = true;
        let held = job.clone().held_after_restore(NOW, LEASE_DURATION);
        assert_eq!(held.hold_until, waits.then_some(NOW + LEASE_DURATION), "{status:?}");
        let renewed = held.clone().hold_renewed(later, LEASE_DURATION);
        assert_eq!(renewed != held, waits, "{status:?}");
        assert_eq!(held.earliest_offer(), held.hold_until, "{status:?}");
    }
}

#[test]
fn offer_expires_at_its_deadline() {
    let until = Timestamp(NOW.0 + 30_000);
    assert_eq!(name(&offered().offer_expired(Timestamp(until.0 - 1))), "offered");
    let expired = offered().offer_expired(until);
    assert_eq!((name(&expired), expired.losses, expired.state_since()), ("queued", 0, until));
    assert_eq!(expired.last_lease().map(|lease| lease.attempt), Some(AttemptNumber(1)));
    assert_eq!(expired.active_lease(), None);
    let running = after(offered(), AttemptReport::Running);
    assert_eq!(running.clone().offer_expired(Timestamp(i64::MAX)), running);
    assert_eq!(name(&offered().offer_withdrawn(NOW)), "queued");
    assert_eq!(running.clone().offer_withdrawn(NOW), running);
}

#[test]
fn only_a_queued_job_is_offered() {
    assert_eq!(offered().offered(NOW, worker(2), vec![], NOW), Err(JobTransitionError::NotQueued));
    let completed = after(offered(), AttemptReport::Completed);
    assert_eq!(completed.offered(NOW, worker(2), vec![], NOW), Err(JobTransitionError::AlreadyEnded));
}

#[test]
fn eviction_is_not_a_loss_and_has_no_back_off() {
    let evicted = after(after(offered(), AttemptReport::Running), AttemptReport::Evicted);
    assert_eq!(evicted.losses, 0);
    let Some(Waiting { not_before, previous: Some(previous), .. }) = evicted.state.waiting() else {
        panic!("not queued")
    };
    assert_eq!((*not_before, &previous.loss), (None, &Some(AttemptLoss::Evicted)));
    let lost = after(offered(), AttemptReport::Running).lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
    assert_eq!(after(lost.clone(), AttemptReport::Evicted), lost, "an earlier loss stays a loss");
}

#[test]
fn attempt_returned_by_an_unhealthy_host_is_not_a_loss() {
    let unhealthy = || AttemptReport::HostUnhealthy { error: "no CUDA".to_owned() };
    let back = after(after(offered(), AttemptReport::Running), unhealthy());
    assert_eq!(back.losses, 0);
    let Some(Waiting { not_before, previous: Some(previous), .. }) = back.state.waiting() else { panic!("not queued") };
    assert_eq!((*not_before, &previous.loss), (None, &Some(AttemptLoss::Requeued("no CUDA".to_owned()))));
    assert_eq!(after(back.clone(), unhealthy()), back, "a repeat changes nothing");
    let completed = after(offered(), AttemptReport::Completed);
    assert_eq!(
        completed.reported(NOW, &worker(1), AttemptNumber(1), unhealthy()),
        Err(JobTransitionError::AlreadyEnded)
    );
}

#[test]
fn targets_have_names() {
    assert_eq!(
        [JobTarget::Auto, JobTarget::Worker, JobTarget::Local].map(JobTarget::as_str),
        ["auto", "worker", "local"]
    );
}

#[test]
fn users_retry_creates_a_new_job() {
    let ended = Job { priority: 20, ..after(offered(), failed()) };
    let again = ended.retried(JobId::new(NOW, [8; 10]), Timestamp(7), "bob".to_owned(), 50).expect("ended");
    assert_eq!((name(&again), again.attempt, again.losses), ("queued", AttemptNumber(0), 0));
    assert_eq!((again.priority, again.retry_of.as_ref(), &again.spec), (20, Some(&ended.id), &ended.spec));
    assert_eq!((again.submitted_by.as_str(), again.submitted_at), ("bob", Timestamp(7)));
    for living in jobs_in_each_status().into_iter().filter(|job| !job.has_ended()) {
        assert_eq!(
            living.retried(JobId::new(NOW, [8; 10]), NOW, "bob".to_owned(), 50),
            Err(JobTransitionError::NotEnded)
        );
    }
}

#[test]
fn priority_can_change_until_the_job_ends() {
    for job in jobs_in_each_status() {
        let expected = if job.has_ended() {
            Err(JobTransitionError::AlreadyEnded)
        } else {
            Ok(Job { priority: 50, ..job.clone() })
        };
        assert_eq!(job.prioritized(50), expected);
    }
}

#[derive(Debug, Clone)]
enum JobCommand {
    Offer(u8),
    Expire,
    Cancel,
    Lose,
    Report(u8, u32, AttemptReport),
}

fn command() -> impl Strategy<Value = JobCommand> {
    let report = prop_oneof![
        Just(AttemptReport::Starting),
        Just(AttemptReport::Running),
        Just(AttemptReport::Completed),
        Just(failed()),
        Just(AttemptReport::Cancelled),
        Just(requeue()),
        Just(AttemptReport::Evicted),
        Just(AttemptReport::HostUnhealthy { error: String::new() }),
    ];
    prop_oneof![
        3 => (0_u8..3).prop_map(JobCommand::Offer),
        1 => Just(JobCommand::Expire),
        1 => Just(JobCommand::Cancel),
        1 => Just(JobCommand::Lose),
        6 => (0_u8..3, 0_u32..6, report).prop_map(|(w, a, r)| JobCommand::Report(w, a, r)),
    ]
}

fn apply(job: Job, command: JobCommand, now: Timestamp) -> Job {
    let before = job.clone();
    match command {
        JobCommand::Offer(w) => job.offered(now, worker(w), vec![], Timestamp(now.0 + 5)).unwrap_or(before),
        JobCommand::Expire => job.offer_expired(now),
        JobCommand::Cancel => job.cancelled(now).unwrap_or(before),
        JobCommand::Lose => job.lost(now, AttemptLoss::WorkerOffline, LEASE_DURATION),
        JobCommand::Report(w, a, r) => job.reported(now, &worker(w), AttemptNumber(a), r).unwrap_or(before),
    }
}

proptest! {
    #[test]
    fn invariants_hold_for_any_sequence_of_events(commands in prop::collection::vec(command(), 0..60), retry: bool) {
        let mut job = queued();
        job.spec.retry_on_failure = retry;
        for (tick, command) in (0_i64..).zip(commands) {
            let before = job.clone();
            let reported = matches!(&command, JobCommand::Report(..));
            job = apply(job, command.clone(), Timestamp(NOW.0 + tick));
            prop_assert!(job.attempt >= before.attempt, "attempt numbers only increase (I1)");
            prop_assert!(job.losses <= job.spec.max_retries + 1);
            if before.has_ended() {
                prop_assert_eq!(&job, &before, "a terminal state never changes (I2)");
            }
            if let (true, Some(lease)) = (reported && job != before, job.last_lease()) {
                let JobCommand::Report(w, a, _) = &command else { unreachable!() };
                prop_assert_eq!(lease.attempt, job.attempt, "only the newest attempt has effects");
                prop_assert_eq!((&lease.worker, lease.attempt), (&worker(*w), AttemptNumber(*a)));
            }
            if matches!(before.state, JobState::Cancelling { .. }) {
                prop_assert!(
                    matches!(job.state, JobState::Cancelling { .. } | JobState::Cancelled { .. }),
                    "a cancelled job never completes"
                );
            }
            if let Some(lease) = job.active_lease() {
                prop_assert_eq!(lease.attempt, job.attempt, "the live lease is the newest attempt's");
            }
        }
    }
}

#[test]
fn attempt_over_its_time_limit_fails_when_stopped() {
    let mut running = after(offered(), AttemptReport::Running);
    running.spec.max_runtime = Some(Millis::from_secs(60));
    let at = |second: i64, report: AttemptReport| {
        running
            .clone()
            .reported(NOW + Millis::from_secs(second), &worker(1), AttemptNumber(1), report)
            .expect("current")
    };
    let over_time = JobFailure::RuntimeExceeded { allowed: Millis::from_secs(60) };
    for report in [AttemptReport::Cancelled, AttemptReport::Requeue { error: String::new() }] {
        assert!(at(59, report.clone()).is_queued());
        let stopped = at(60, report.clone());
        assert!(matches!(&stopped.state, JobState::Failed { failure, .. } if *failure == over_time));
        assert_eq!(stopped.clone().reported(NOW, &worker(1), AttemptNumber(1), report), Ok(stopped));
    }
    assert!(
        matches!(at(60, AttemptReport::Completed).state, JobState::Completed { .. }),
        "it was quicker than the stop"
    );
    assert_eq!(running.exceeded_runtime(NOW + Millis::from_secs(59)), None);
    assert_eq!(queued().exceeded_runtime(Timestamp(i64::MAX)), None);
}

#[test]
fn exclusive_job_is_delayed_until_an_unreported_trainer_must_have_stopped() {
    let mut running = after(offered(), AttemptReport::Running);
    running.spec.exclusive = true;
    let lost = running.clone().lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
    assert_eq!(
        (lost.hold_until, lost.earliest_offer()),
        (Some(NOW + LEASE_DURATION), Some(NOW + LEASE_DURATION)),
        "longer than the back-off"
    );
    let later = Timestamp(NOW.0 + 1_000);
    let heard = lost.clone().hold_renewed(later, LEASE_DURATION);
    assert_eq!(heard.hold_until, Some(later + LEASE_DURATION + HOLD_SLACK), "its agent may treat that as a renewal");
    assert_eq!(heard.clone().hold_renewed(later, LEASE_DURATION), heard, "not for each request");
    assert_eq!(heard.cancelled(NOW).expect("queued").hold_until, Some(later + LEASE_DURATION + HOLD_SLACK));
    for word in [AttemptReport::Running, AttemptReport::Completed, requeue(), AttemptReport::Evicted] {
        let said = lost.clone().reported(later, &worker(1), AttemptNumber(1), word.clone()).expect("current");
        assert_eq!(said.hold_until, None, "{word:?}: its agent has reported");
    }
    let cancelled =
        running.clone().cancelled(NOW).expect("running").lost(NOW, AttemptLoss::UnknownToAgent, LEASE_DURATION);
    let again = cancelled.retried(job_id(2), later, "ada".to_owned(), 50).expect("ended");
    assert_eq!((name(&cancelled), again.earliest_offer()), ("cancelled", Some(NOW + LEASE_DURATION)));
    let plain = after(offered(), AttemptReport::Running).lost(NOW, AttemptLoss::WorkerOffline, LEASE_DURATION);
    assert_eq!((plain.hold_until, plain.clone().hold_renewed(later, LEASE_DURATION)), (None, plain));
}
