//! Tables for single transitions, and random sequences for the invariants.

mod losses;

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{LEASE_DURATION, WORKER_SILENT, spec};
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

/// A job in each status.
fn jobs_in_each_status() -> [Job; JobStatus::ALL.len()] {
    let starting = after(offered(), AttemptReport::Starting);
    let running = after(starting.clone(), AttemptReport::Running);
    let cancelling = running.clone().cancelled(NOW).expect("running");
    let completed = after(running.clone(), AttemptReport::Completed);
    let (failed, cancelled) = (after(running.clone(), failed()), after(cancelling.clone(), AttemptReport::Cancelled));
    [queued(), offered(), starting, running, cancelling, completed, failed, cancelled]
}

/// Jobs in all situations that a request of an agent can find: each status, and cases that a status does not
/// distinguish.
fn situations() -> [(&'static str, Job); 12] {
    let [submitted, offered, starting, running, cancelling, completed, failed, cancelled] = jobs_in_each_status();
    let limit = Millis::from_secs(60);
    let with_limit = Job { spec: JobSpec { max_runtime: Some(limit), ..running.spec.clone() }, ..running.clone() };
    let overdue = with_limit.reported(NOW + limit, &worker(1), AttemptNumber(1), AttemptReport::Cancelled);
    [
        ("submitted", submitted),
        ("expired", offered.clone().offer_expired(Timestamp(NOW.0 + 30_000))),
        ("lost", running.clone().lost(NOW, WORKER_SILENT, LEASE_DURATION)),
        ("evicted", after(running.clone(), AttemptReport::Evicted)),
        ("offered", offered),
        ("starting", starting),
        ("running", running),
        ("cancelling", cancelling),
        ("completed", completed),
        ("failed", failed),
        ("overdue", overdue.expect("current")),
        ("cancelled", cancelled),
    ]
}

/// Compares a table with the expected cells: a row for each situation, below the names of the columns.
fn assert_table<C>(table: &str, columns: &[(String, C)], cell: impl Fn(&Job, &C) -> &'static str) {
    let mut lines = table.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(lines.next(), Some(names));
    for (name, job) in &situations() {
        let cells = columns.iter().map(|(_, column)| cell(job, column));
        let row: Vec<&str> = [*name].into_iter().chain(cells).collect();
        assert_eq!(lines.next(), Some(row));
    }
    assert_eq!(lines.next(), None);
}

fn error_word(error: &JobTransitionError) -> &'static str {
    match error {
        JobTransitionError::AlreadyEnded => "!ended",
        JobTransitionError::StaleAttempt { .. } => "!stale",
        JobTransitionError::WrongWorker => "!worker",
        JobTransitionError::NotQueued | JobTransitionError::NotEnded => "!",
    }
}

/// Every report: the match lists all, so a new one does not compile until it is added here; the table then needs a
/// column for it.
fn every_report() -> Vec<AttemptReport> {
    let next = |report: &AttemptReport| match report {
        AttemptReport::Starting => Some(AttemptReport::Running),
        AttemptReport::Running => Some(AttemptReport::Completed),
        AttemptReport::Completed => Some(failed()),
        AttemptReport::Failed { .. } => Some(AttemptReport::Cancelled),
        AttemptReport::Cancelled => Some(requeue()),
        AttemptReport::Requeue { .. } => Some(AttemptReport::Evicted),
        AttemptReport::Evicted => Some(AttemptReport::Preempted {
            by: crate::domain::fixtures::job_id(2),
            lost: Millis::from_secs(60),
            step: Some(500),
        }),
        AttemptReport::Preempted { .. } => Some(AttemptReport::HostUnhealthy { error: "no CUDA".to_owned() }),
        AttemptReport::HostUnhealthy { .. } => None,
    };
    std::iter::successors(Some(AttemptReport::Starting), next).collect()
}

/// The status after a report on the newest attempt; `=` if nothing changes; an error if it is rejected.
const REPORT_TABLE: &str = "
            Starting  Running  Completed  Failed     Cancelled  Requeue    Evicted    Preempted  HostUnhealthy
submitted   !worker   !worker  !worker    !worker    !worker    !worker    !worker    !worker    !worker
expired     starting  running  completed  failed     queued     queued     queued     queued     queued
lost        starting  running  completed  failed     queued     queued     queued     queued     queued
evicted     =         =        completed  failed     queued     queued     =          queued     queued
offered     starting  running  completed  failed     queued     queued     queued     queued     queued
starting    =         running  completed  failed     queued     queued     queued     queued     queued
running     =         =        completed  failed     queued     queued     queued     queued     queued
cancelling  =         =        cancelled  cancelled  cancelled  cancelled  cancelled  cancelled  cancelled
completed   !ended    !ended   =          !ended     !ended     !ended     !ended     !ended     !ended
failed      !ended    !ended   !ended     =          !ended     !ended     !ended     !ended     !ended
overdue     !ended    !ended   !ended     =          =          =          !ended     !ended     !ended
cancelled   !ended    !ended   !ended     !ended     =          !ended     !ended     !ended     !ended
";

#[test]
fn report_transition_table() {
    let variant = |report: &AttemptReport| format!("{report:?}").split(' ').next().unwrap_or_default().to_owned();
    let columns: Vec<_> = every_report().into_iter().map(|report| (variant(&report), report)).collect();
    assert_table(REPORT_TABLE, &columns, |job, report| {
        let later = NOW + Millis::from_secs(1);
        match job.clone().reported(later, &worker(1), AttemptNumber(1), report.clone()) {
            Ok(next) if next == *job => "=",
            Ok(next) => next.state.as_str(),
            Err(error) => error_word(&error),
        }
    });
}

/// Whether the agent of an attempt may still send files and metrics, and fetch secrets.
const CURRENT_TABLE: &str = "
            newest   other-worker  older    newer
submitted   !worker  !worker       !worker  !worker
expired     ok       !worker       !stale   !worker
lost        ok       !worker       !stale   !worker
evicted     ok       !worker       !stale   !worker
offered     ok       !worker       !stale   !worker
starting    ok       !worker       !stale   !worker
running     ok       !worker       !stale   !worker
cancelling  ok       !worker       !stale   !worker
completed   !ended   !worker       !stale   !worker
failed      !ended   !worker       !stale   !worker
overdue     !ended   !worker       !stale   !worker
cancelled   !ended   !worker       !stale   !worker
";

#[test]
fn current_attempt_table() {
    let callers = [("newest", 1, 1), ("other-worker", 2, 1), ("older", 1, 0), ("newer", 1, 2)];
    let columns = callers.map(|(name, by, attempt)| (name.to_owned(), (worker(by), AttemptNumber(attempt))));
    assert_table(CURRENT_TABLE, &columns, |job, (worker, attempt)| {
        job.check_current_attempt(worker, *attempt).map_or_else(|error| error_word(&error), |()| "ok")
    });
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
    let offered_again = after(offered(), AttemptReport::Running)
        .lost(NOW, AttemptLoss::UnknownToAgent, LEASE_DURATION)
        .offered(NOW, worker(2), vec![], NOW)
        .expect("queued");
    assert_eq!(
        offered_again.reported(NOW, &worker(1), AttemptNumber(1), AttemptReport::Completed),
        Err(JobTransitionError::StaleAttempt { current: AttemptNumber(2) })
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
    assert_eq!(name(&cancelling.clone().lost(NOW, WORKER_SILENT, LEASE_DURATION)), "cancelled");
    assert_eq!(cancel(after(cancelling, AttemptReport::Cancelled)), Err(JobTransitionError::AlreadyEnded));
    assert_eq!(cancel(after(offered(), AttemptReport::Completed)), Err(JobTransitionError::AlreadyEnded));
    assert_eq!(cancel(after(offered(), failed())), Err(JobTransitionError::AlreadyEnded));
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

/// An exclusive job that waits is always delayed, because a trainer of it may run: on a host that the backup does not
/// know, or because its lost attempt sent a request.
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
fn targets_have_names() {
    assert_eq!(
        [JobTarget::Auto, JobTarget::Worker, JobTarget::Local].map(JobTarget::as_str),
        ["auto", "worker", "local"]
    );
}

#[test]
fn users_retry_creates_a_new_job() {
    let ended = Job { priority: 20, ..after(offered(), failed()) };
    let retried = ended.retried(JobId::new(NOW, [8; 10]), Timestamp(7), "bob".to_owned(), 50).expect("ended");
    assert_eq!((name(&retried), retried.attempt, retried.losses), ("queued", AttemptNumber(0), 0));
    assert_eq!((retried.priority, retried.retry_of.as_ref(), &retried.spec), (20, Some(&ended.id), &ended.spec));
    assert_eq!((retried.submitted_by.as_str(), retried.submitted_at), ("bob", Timestamp(7)));
    for active_job in jobs_in_each_status().into_iter().filter(|job| !job.has_ended()) {
        assert_eq!(
            active_job.retried(JobId::new(NOW, [8; 10]), NOW, "bob".to_owned(), 50),
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
    let report = prop::sample::select(every_report());
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
        JobCommand::Lose => job.lost(now, WORKER_SILENT, LEASE_DURATION),
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
                prop_assert_eq!(lease.attempt, job.attempt, "the active lease is the newest attempt's");
            }
        }
    }
}
