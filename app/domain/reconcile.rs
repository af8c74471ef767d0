//! What follows when an agent says which attempts it runs: at a registration, and with each heartbeat.

use super::ids::{Attempt, JobId};
use super::job::{Job, Loss, Refused, Report, State};
use super::time::{Millis, Timestamp};
use super::worker::Worker;

/// What an agent says it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// Which attempt of it; older agents do not know.
    pub attempt: Option<Attempt>,
}

/// What becomes of one claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is this worker's: go on. The job may have changed by it (a lost one was taken back).
    Keep(Box<Job>),
    /// It is not this worker's any more: stop it.
    Stop,
}

/// Judges a claim of `worker`, given the job as it is stored (none if there is no such job) and the jobs that hold a
/// lease of the worker.
pub fn judge(now: Timestamp, worker: &Worker, held: &[Job], claim: &Claim, job: Option<&Job>) -> Verdict {
    let Some(job) = job else { return Verdict::Stop };
    let attempt = claim.attempt.unwrap_or(job.attempt);
    // An older agent names a job as soon as it has heard of it.
    let heard_of = claim.attempt.is_none() && matches!(job.state, State::Offered { .. });
    let report = if heard_of { Report::Starting } else { Report::Running };
    // What is being cancelled goes on until the worker has been told to stop, and confirmed.
    match job.clone().reported(now, &worker.id, attempt, report) {
        Ok(after) if displaced(job, &after, Some(worker), held) => Verdict::Stop,
        Ok(after) => Verdict::Keep(Box::new(after)),
        Err(
            Refused::Ended | Refused::OldAttempt { .. } | Refused::NotYours | Refused::NotQueued | Refused::NotEnded,
        ) => Verdict::Stop,
    }
}

/// Whether a lost attempt would come back to a place that it has no more: its worker was removed, or the slot or a GPU
/// went to another job since (invariant I3). `held` are the jobs that hold a lease of the worker.
pub fn displaced(before: &Job, after: &Job, worker: Option<&Worker>, held: &[Job]) -> bool {
    let (None, Some(lease)) = (before.live_lease(), after.live_lease()) else { return false };
    let slots = worker.and_then(Worker::capability).map_or(0, |capability| capability.max_jobs);
    let mut taken = held.iter().filter_map(Job::live_lease).flat_map(|other| &other.gpus);
    held.len() >= slots as usize || taken.any(|gpu| lease.gpus.contains(gpu))
}

/// Whether a job that is leased to the worker would be without its agent, if one that claims this took the place of the
/// one that has it.
pub fn forsakes(held: &[Job], claims: &[Claim]) -> bool {
    held.iter().any(|job| claims.iter().all(|claim| claim.job != job.id))
}

/// What becomes of a job that is leased to the worker, when its agent registers and does not claim it.
///
/// An offer stays: it is sent again, unless an older agent could not keep its promise. What ran is lost; what was being
/// cancelled is cancelled. A `lease` is how long what nobody speaks of may still train.
pub fn unclaimed(now: Timestamp, worker: &Worker, job: Job, lease: Millis) -> Job {
    match job.state {
        State::Starting { .. } | State::Running { .. } | State::Cancelling { .. } => {
            job.lost(now, Loss::AgentForgot, lease)
        }
        State::Offered { .. } if job.spec.exclusive && worker.is_older() => job.offer_withdrawn(now),
        _ => job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{LEASE, NOW, job, job_id, worker, worker_id};
    use crate::domain::job::Demand;

    const LATER: Timestamp = Timestamp(NOW.0 + 1_000);

    fn offered_one(n: u16, gpu: &str) -> Job {
        job(n, Demand::default()).offered(NOW, worker_id(1), vec![gpu.to_owned()], LATER).expect("it waits")
    }

    fn offered() -> Job {
        offered_one(9, "GPU-1-0")
    }

    fn running() -> Job {
        offered().reported(NOW, &worker_id(1), Attempt(1), Report::Running).expect("current")
    }

    fn verdict(claim_of: u16, attempt: Option<u32>, job: Option<&Job>) -> Option<&'static str> {
        let claim = Claim { job: job_id(9), attempt: attempt.map(Attempt) };
        match judge(NOW, &worker(claim_of, &[80], 1), &[], &claim, job) {
            Verdict::Stop => None,
            Verdict::Keep(job) => Some(match job.state {
                State::Running { .. } => "running",
                State::Starting { .. } => "starting",
                State::Cancelling { .. } => "cancelling",
                _ => "other",
            }),
        }
    }

    #[test]
    fn claims_row_by_row() {
        let lost = running().lost(NOW, Loss::WorkerOffline, LEASE);
        let moved = lost.clone().offered(NOW, worker_id(2), vec![], LATER).expect("it waits");
        let cancelling = running().cancelled(NOW).expect("it runs");
        let ended = running().reported(NOW, &worker_id(1), Attempt(1), Report::Completed).expect("current");
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
        for (n, (claim_of, attempt, job, expected)) in rows.into_iter().enumerate() {
            assert_eq!(verdict(claim_of, attempt, job), expected, "row {n}");
        }
    }

    #[test]
    fn what_is_being_cancelled_stays_as_it_is() {
        let cancelling = running().cancelled(NOW).expect("it runs");
        let claim = Claim { job: cancelling.id.clone(), attempt: Some(Attempt(1)) };
        let verdict = judge(LATER, &worker(1, &[80], 1), &[], &claim, Some(&cancelling));
        assert_eq!(verdict, Verdict::Keep(Box::new(cancelling)));
    }

    #[test]
    fn a_lost_attempt_comes_back_only_to_a_place_that_is_free() {
        let lost = running().lost(NOW, Loss::WorkerOffline, LEASE);
        let claim = Claim { job: lost.id.clone(), attempt: Some(Attempt(1)) };
        let comes_back = |max_jobs, held: &[Job]| {
            let host = worker(1, &[80, 80], max_jobs);
            judge(NOW, &host, held, &claim, Some(&lost)) != Verdict::Stop
        };
        assert!(comes_back(1, &[]) && comes_back(2, &[offered_one(2, "GPU-1-1")]));
        assert!(!comes_back(1, &[offered_one(2, "GPU-1-1")]), "another has its slot");
        assert!(!comes_back(2, &[offered_one(2, "GPU-1-0")]), "another has its GPU (I3)");
        let back = lost.clone().reported(NOW, &worker_id(1), Attempt(1), Report::Starting).expect("current");
        assert!(displaced(&lost, &back, None, &[]), "its worker was removed");
        let ended = lost.clone().reported(NOW, &worker_id(1), Attempt(1), Report::Completed).expect("current");
        assert!(!displaced(&lost, &ended, None, &[]), "an end takes no place");
    }

    #[test]
    fn who_claims_all_that_is_held_forsakes_nothing() {
        let claim = |n| Claim { job: job_id(n), attempt: None };
        assert!(!forsakes(&[], &[]) && !forsakes(&[running()], &[claim(9)]));
        assert!(!forsakes(&[running()], &[claim(9), claim(8)]) && forsakes(&[running()], &[claim(8)]));
        assert!(forsakes(&[offered()], &[]) && forsakes(&[running(), offered_one(8, "GPU-1-1")], &[claim(9)]));
    }

    #[test]
    fn what_is_not_claimed_is_lost_unless_it_was_only_offered() {
        let unclaimed = |job| unclaimed(NOW, &worker(1, &[80], 1), job, LEASE);
        assert_eq!(unclaimed(offered()), offered());
        assert!(matches!(unclaimed(running()).state, State::Queued { not_before: Some(_), .. }));
        let cancelling = running().cancelled(NOW).expect("it runs");
        assert!(matches!(unclaimed(cancelling).state, State::Cancelled { .. }));
    }
}
