//! Compares the attempts that an agent claims to run with the stored jobs: at registration, and with each heartbeat.

use super::ids::{AttemptNumber, JobId};
use super::job::{AttemptLoss, AttemptReport, Job, JobState};
use super::time::{Millis, Timestamp};
use super::worker::Worker;

/// An attempt that an agent claims to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptClaim {
    /// The job.
    pub job: JobId,
    /// The attempt; not known by older agents.
    pub attempt: Option<AttemptNumber>,
}

/// The result for one claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimVerdict {
    /// The worker may continue. The job may have changed (a lost attempt was recovered).
    Keep(Box<Job>),
    /// The job is no longer assigned to this worker: it must stop.
    Stop,
}

/// Judges a claim of `worker`, given the stored job (none if it does not exist) and the jobs with an active lease of
/// the worker.
pub fn judge_claim(
    now: Timestamp,
    worker: &Worker,
    held: &[Job],
    claim: &AttemptClaim,
    job: Option<&Job>,
) -> ClaimVerdict {
    let Some(job) = job else { return ClaimVerdict::Stop };
    let attempt = claim.attempt.unwrap_or(job.attempt);
    // An older agent claims a job as soon as it has received the offer.
    let accepts_offer = claim.attempt.is_none() && matches!(job.state, JobState::Offered { .. });
    let report = if accepts_offer { AttemptReport::Starting } else { AttemptReport::Running };
    // A job that is being cancelled runs until the worker has received the request and confirmed it.
    match job.clone().reported(now, &worker.id, attempt, report) {
        // A state may ignore a report, and give the attempt no lease: then it must not run.
        Ok(after) if after.active_lease().is_none() || resources_are_taken(job, &after, Some(worker), held) => {
            ClaimVerdict::Stop
        }
        Ok(after) => ClaimVerdict::Keep(Box::new(after)),
        Err(_) => ClaimVerdict::Stop,
    }
}

/// Returns whether a lost attempt cannot be recovered because its resources are taken: its worker was removed, or the
/// slot or a GPU was allocated to another job (invariant I3). `held` are the jobs with an active lease of the worker.
pub fn resources_are_taken(before: &Job, after: &Job, worker: Option<&Worker>, held: &[Job]) -> bool {
    let (None, Some(lease)) = (before.active_lease(), after.active_lease()) else { return false };
    let slots = worker.and_then(Worker::capability).map_or(0, |capability| capability.max_jobs);
    let mut used_gpus = held.iter().filter_map(Job::active_lease).flat_map(|other| &other.gpus);
    held.len() >= slots as usize || used_gpus.any(|gpu| lease.gpus.contains(gpu))
}

impl AttemptClaim {
    /// Returns whether it is about the newest attempt of a job.
    pub fn is_newest_of(&self, job: &Job) -> bool {
        self.job == job.id && self.attempt.is_none_or(|attempt| attempt == job.attempt)
    }
}

/// Returns whether a job with a lease of the worker would lose its agent if an agent with these claims replaced the
/// current one.
pub fn would_orphan_jobs(held: &[Job], claims: &[AttemptClaim]) -> bool {
    held.iter().any(|job| claims.iter().all(|claim| claim.job != job.id))
}

/// Returns a job with a lease of the worker after its agent registered without claiming it.
///
/// An offer stays and is sent again; that of an exclusive job is withdrawn from an older agent. A running attempt is
/// lost; a job that was being cancelled is cancelled. An unclaimed trainer may run for `lease_duration`.
pub fn resolve_unclaimed(now: Timestamp, worker: &Worker, job: Job, lease_duration: Millis) -> Job {
    match job.state {
        JobState::Offered { .. } if job.spec.exclusive && worker.has_older_agent() => job.offer_withdrawn(now),
        JobState::Offered { .. } => job,
        // Without an active lease it stays as it is.
        _ => job.lost(now, AttemptLoss::UnknownToAgent, lease_duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{LEASE_DURATION, NOW, WORKER_SILENT, job, job_id, worker, worker_id};
    use crate::domain::job::{Demand, JobSpec};

    const LATER: Timestamp = Timestamp(NOW.0 + 1_000);

    fn offered_job(n: u16, gpu: &str) -> Job {
        job(n, Demand::default()).offered(NOW, worker_id(1), vec![gpu.to_owned()], LATER).expect("queued")
    }

    fn offered() -> Job {
        offered_job(9, "GPU-1-0")
    }

    fn running() -> Job {
        offered().reported(NOW, &worker_id(1), AttemptNumber(1), AttemptReport::Running).expect("current")
    }

    fn verdict(worker_number: u16, attempt: Option<u32>, job: Option<&Job>) -> Option<&'static str> {
        let claim = AttemptClaim { job: job_id(9), attempt: attempt.map(AttemptNumber) };
        match judge_claim(NOW, &worker(worker_number, &[80], 1), &[], &claim, job) {
            ClaimVerdict::Stop => None,
            ClaimVerdict::Keep(job) => Some(match job.state {
                JobState::Running { .. } => "running",
                JobState::Starting { .. } => "starting",
                JobState::Cancelling { .. } => "cancelling",
                _ => "other",
            }),
        }
    }

    #[test]
    fn claim_verdict_table() {
        let lost = running().lost(NOW, WORKER_SILENT, LEASE_DURATION);
        let moved = lost.clone().offered(NOW, worker_id(2), vec![], LATER).expect("queued");
        let cancelling = running().cancelled(NOW).expect("running");
        let ended =
            running().reported(NOW, &worker_id(1), AttemptNumber(1), AttemptReport::Completed).expect("current");
        let rows = [
            (1, Some(1), Some(&running()), Some("running")),
            (1, None, Some(&running()), Some("running")),
            (1, Some(1), Some(&offered()), Some("running")),
            (1, None, Some(&offered()), Some("starting")),
            (1, Some(1), Some(&lost), Some("running")),
            (1, Some(1), Some(&cancelling), Some("cancelling")),
            (1, Some(1), Some(&moved), None),
            (1, None, Some(&moved), None),
            (2, Some(1), Some(&running()), None),
            (2, Some(1), Some(&cancelling), None),
            (1, Some(2), Some(&running()), None),
            (1, Some(2), Some(&cancelling), None),
            (1, Some(1), Some(&ended), None),
            (1, Some(1), None, None),
        ];
        for (n, (worker_number, attempt, job, expected)) in rows.into_iter().enumerate() {
            assert_eq!(verdict(worker_number, attempt, job), expected, "row {n}");
        }
    }

    /// An agent that reports the end of an attempt may have claimed it just before, in a request that arrives later.
    #[test]
    fn claim_does_not_recover_an_attempt_that_has_reported_its_end() {
        let claim = AttemptClaim { job: job_id(9), attempt: Some(AttemptNumber(1)) };
        let failing = Job { spec: JobSpec { retry_on_failure: true, ..running().spec }, ..running() };
        for report in [
            AttemptReport::Requeue { error: "shutdown".to_owned() },
            AttemptReport::Failed { exit_code: Some(1), error: "failed".to_owned() },
            AttemptReport::Evicted,
            AttemptReport::HostUnhealthy { error: "disk".to_owned() },
            AttemptReport::Cancelled,
        ] {
            let lost = failing.clone().lost(NOW, WORKER_SILENT, LEASE_DURATION);
            for job in [failing.clone(), lost] {
                let queued = job.reported(NOW, &worker_id(1), AttemptNumber(1), report.clone()).expect("current");
                let verdict = judge_claim(NOW, &worker(1, &[80], 1), &[], &claim, Some(&queued));
                assert_eq!((verdict, queued.has_ended()), (ClaimVerdict::Stop, false), "{report:?}");
            }
        }
    }

    #[test]
    fn abandoned_attempt_is_neither_accepted_nor_recovered() {
        let claim = AttemptClaim { job: job_id(9), attempt: Some(AttemptNumber(1)) };
        let lost = running().lost(NOW, WORKER_SILENT, LEASE_DURATION);
        for job in [offered().offer_withdrawn(NOW), lost] {
            let abandoned = job.attempt_abandoned();
            assert!(abandoned.is_queued() && abandoned.attempt == AttemptNumber(1));
            let verdict = judge_claim(NOW, &worker(1, &[80], 1), &[], &claim, Some(&abandoned));
            assert_eq!(verdict, ClaimVerdict::Stop);
        }
        assert_eq!(running().attempt_abandoned(), running());
    }

    #[test]
    fn claimed_cancelling_job_is_unchanged() {
        let cancelling = running().cancelled(NOW).expect("running");
        let claim = AttemptClaim { job: cancelling.id.clone(), attempt: Some(AttemptNumber(1)) };
        let verdict = judge_claim(LATER, &worker(1, &[80], 1), &[], &claim, Some(&cancelling));
        assert_eq!(verdict, ClaimVerdict::Keep(Box::new(cancelling)));
    }

    #[test]
    fn lost_attempt_is_recovered_only_if_its_resources_are_free() {
        let lost = running().lost(NOW, WORKER_SILENT, LEASE_DURATION);
        let claim = AttemptClaim { job: lost.id.clone(), attempt: Some(AttemptNumber(1)) };
        let is_recovered = |max_jobs, held: &[Job]| {
            let host = worker(1, &[80, 80], max_jobs);
            judge_claim(NOW, &host, held, &claim, Some(&lost)) != ClaimVerdict::Stop
        };
        assert!(is_recovered(1, &[]) && is_recovered(2, &[offered_job(2, "GPU-1-1")]));
        assert!(!is_recovered(1, &[offered_job(2, "GPU-1-1")]), "another job has its slot");
        assert!(!is_recovered(2, &[offered_job(2, "GPU-1-0")]), "another job has its GPU (I3)");
        let recovered =
            lost.clone().reported(NOW, &worker_id(1), AttemptNumber(1), AttemptReport::Starting).expect("current");
        assert!(resources_are_taken(&lost, &recovered, None, &[]), "its worker was removed");
        let ended =
            lost.clone().reported(NOW, &worker_id(1), AttemptNumber(1), AttemptReport::Completed).expect("current");
        assert!(!resources_are_taken(&lost, &ended, None, &[]), "an ended job needs no resources");
    }

    #[test]
    fn claiming_all_held_jobs_orphans_none() {
        let claim = |n| AttemptClaim { job: job_id(n), attempt: None };
        assert!(!would_orphan_jobs(&[], &[]) && !would_orphan_jobs(&[running()], &[claim(9)]));
        assert!(
            !would_orphan_jobs(&[running()], &[claim(9), claim(8)]) && would_orphan_jobs(&[running()], &[claim(8)])
        );
        assert!(
            would_orphan_jobs(&[offered()], &[])
                && would_orphan_jobs(&[running(), offered_job(8, "GPU-1-1")], &[claim(9)])
        );
    }

    #[test]
    fn unclaimed_attempt_is_lost_unless_only_offered() {
        let unclaimed = |job| resolve_unclaimed(NOW, &worker(1, &[80], 1), job, LEASE_DURATION);
        assert_eq!(unclaimed(offered()), offered());
        assert!(unclaimed(running()).state.waiting().is_some_and(|waiting| waiting.not_before.is_some()));
        let cancelling = running().cancelled(NOW).expect("running");
        assert!(matches!(unclaimed(cancelling).state, JobState::Cancelled { .. }));
    }
}
