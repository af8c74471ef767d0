//! Attempts that are lost, evicted, returned or stopped for their time limit, and the delay of exclusive jobs after them.

use super::*;
use crate::domain::fixtures::job_id;
use crate::domain::job::transitions::HOLD_SLACK;

#[test]
fn lost_attempt_is_recovered_until_the_next_offer() {
    let lost = after(offered(), AttemptReport::Running).lost(NOW, WORKER_SILENT, LEASE_DURATION);
    let recovered = after(lost.clone(), AttemptReport::Running);
    assert_eq!(recovered.active_lease().map(|lease| lease.attempt), Some(AttemptNumber(1)));
    assert_eq!(recovered.losses, 1);
    let lost_twice = after(lost, requeue());
    assert_eq!(lost_twice.losses, 1, "one attempt is one loss");
}

#[test]
fn job_fails_after_its_last_retry() {
    let mut job = queued();
    for attempt in 1..=4 {
        job = job.offered(NOW, worker(1), vec![], NOW).expect("queued");
        job = job.reported(NOW, &worker(1), AttemptNumber(attempt), AttemptReport::Running).expect("current");
        job = job.lost(NOW, WORKER_SILENT, LEASE_DURATION);
        assert_eq!(job.losses, attempt);
    }
    assert_eq!(job.state.loss(), Some(&WORKER_SILENT), "it failed because of it");
    assert_eq!(job.state.status(), JobStatus::Failed);
}

#[test]
fn trainer_failure_is_retried_only_on_request() {
    let mut job = offered();
    job.spec.retry_on_failure = true;
    let waiting = after(job, failed());
    assert!(
        matches!(waiting.state, JobState::Queued(Waiting { not_before: Some(retry_at), .. }) if retry_at.0 == NOW.0 + 10_000)
    );
}

#[test]
fn eviction_is_not_a_loss_and_has_no_back_off() {
    let evicted = after(after(offered(), AttemptReport::Running), AttemptReport::Evicted);
    assert_eq!(evicted.losses, 0);
    let Some(Waiting { not_before, previous: Some(previous), .. }) = evicted.state.waiting() else {
        panic!("not queued")
    };
    assert_eq!((*not_before, &previous.loss), (None, &Some(AttemptLoss::Evicted)));
    let lost = after(offered(), AttemptReport::Running).lost(NOW, WORKER_SILENT, LEASE_DURATION);
    let evicted = after(lost.clone(), AttemptReport::Evicted);
    assert_eq!((evicted.losses, evicted.earliest_offer()), (1, lost.earliest_offer()), "an earlier loss stays a loss");
}

#[test]
fn attempt_returned_by_an_unhealthy_host_is_not_a_loss() {
    let unhealthy = || AttemptReport::HostUnhealthy { error: "no CUDA".to_owned() };
    let returned = after(after(offered(), AttemptReport::Running), unhealthy());
    assert_eq!(returned.losses, 0);
    let Some(Waiting { not_before, previous: Some(previous), .. }) = returned.state.waiting() else {
        panic!("not queued")
    };
    assert_eq!((*not_before, &previous.loss), (None, &Some(AttemptLoss::Requeued("no CUDA".to_owned()))));
    assert_eq!(after(returned.clone(), unhealthy()), returned, "a repeat changes nothing");
    let completed = after(offered(), AttemptReport::Completed);
    assert_eq!(
        completed.reported(NOW, &worker(1), AttemptNumber(1), unhealthy()),
        Err(JobTransitionError::AlreadyEnded)
    );
}

#[test]
fn attempt_over_its_time_limit_fails_when_stopped() {
    let mut running = after(offered(), AttemptReport::Running);
    running.spec.max_runtime = Some(Millis::from_secs(60));
    let reported_at = |second: i64, report: AttemptReport| {
        running
            .clone()
            .reported(NOW + Millis::from_secs(second), &worker(1), AttemptNumber(1), report)
            .expect("current")
    };
    let runtime_exceeded = JobFailure::RuntimeExceeded { allowed: Millis::from_secs(60) };
    for report in [AttemptReport::Cancelled, AttemptReport::Requeue { error: String::new() }] {
        assert!(reported_at(59, report.clone()).is_queued());
        let stopped = reported_at(60, report.clone());
        assert!(matches!(&stopped.state, JobState::Failed { failure, .. } if *failure == runtime_exceeded));
        assert_eq!(stopped.clone().reported(NOW, &worker(1), AttemptNumber(1), report), Ok(stopped));
    }
    assert!(
        matches!(reported_at(60, AttemptReport::Completed).state, JobState::Completed { .. }),
        "it completed before it was stopped"
    );
    assert_eq!(running.exceeded_runtime(NOW + Millis::from_secs(59)), None);
    assert_eq!(queued().exceeded_runtime(Timestamp(i64::MAX)), None);
}

#[test]
fn exclusive_job_is_delayed_until_an_unreported_trainer_must_have_stopped() {
    let mut running = after(offered(), AttemptReport::Running);
    running.spec.exclusive = true;
    let lost = running.clone().lost(NOW, WORKER_SILENT, LEASE_DURATION);
    assert_eq!(
        (lost.hold_until, lost.earliest_offer()),
        (Some(NOW + LEASE_DURATION), Some(NOW + LEASE_DURATION)),
        "longer than the back-off"
    );
    let later = Timestamp(NOW.0 + 1_000);
    let renewed = lost.clone().hold_renewed(later, LEASE_DURATION);
    assert_eq!(renewed.hold_until, Some(later + LEASE_DURATION + HOLD_SLACK), "its agent may treat that as a renewal");
    assert_eq!(renewed.clone().hold_renewed(later, LEASE_DURATION), renewed, "not extended for each request");
    assert_eq!(renewed.cancelled(NOW).expect("queued").hold_until, Some(later + LEASE_DURATION + HOLD_SLACK));
    for report in [AttemptReport::Running, AttemptReport::Completed, requeue(), AttemptReport::Evicted] {
        let reported = lost.clone().reported(later, &worker(1), AttemptNumber(1), report.clone()).expect("current");
        assert_eq!(reported.hold_until, None, "{report:?}: its agent has reported");
    }
    let cancelled =
        running.clone().cancelled(NOW).expect("running").lost(NOW, AttemptLoss::UnknownToAgent, LEASE_DURATION);
    let retried = cancelled.retried(job_id(2), later, "ada".to_owned(), 50).expect("ended");
    assert_eq!((name(&cancelled), retried.earliest_offer()), ("cancelled", Some(NOW + LEASE_DURATION)));
    assert!(cancelled.is_newest_attempt(&worker(1), AttemptNumber(1)), "its agent may still run it");
    let renewed = cancelled.hold_renewed(later, LEASE_DURATION);
    let retried = renewed.retried(job_id(2), later, "ada".to_owned(), 50).expect("ended");
    assert_eq!(retried.earliest_offer(), Some(later + LEASE_DURATION + HOLD_SLACK));
    let not_exclusive = after(offered(), AttemptReport::Running).lost(NOW, WORKER_SILENT, LEASE_DURATION);
    assert_eq!(
        (not_exclusive.hold_until, not_exclusive.clone().hold_renewed(later, LEASE_DURATION)),
        (None, not_exclusive)
    );
}
