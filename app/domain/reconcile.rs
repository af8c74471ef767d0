//! What follows when an agent says which attempts it runs: at a registration, and with each heartbeat.

use super::ids::{Attempt, JobId, WorkerId};
use super::job::{Job, Loss, Refused, Report, State};
use super::time::Timestamp;

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

/// Judges a claim of `worker`, given the job as it is stored (none if there is no such job).
pub fn judge(now: Timestamp, worker: &WorkerId, claim: &Claim, job: Option<&Job>) -> Verdict {
    let Some(job) = job else { return Verdict::Stop };
    let attempt = claim.attempt.unwrap_or(job.attempt);
    match &job.state {
        // It must go on until the worker has been told to stop, and confirmed.
        State::Cancelling { lease, .. } if &lease.worker == worker && lease.attempt == attempt => {
            Verdict::Keep(Box::new(job.clone()))
        }
        _ => match job.clone().reported(now, worker, attempt, Report::Running) {
            Ok(job) => Verdict::Keep(Box::new(job)),
            Err(
                Refused::Ended
                | Refused::OldAttempt { .. }
                | Refused::NotYours
                | Refused::NotQueued
                | Refused::NotEnded,
            ) => Verdict::Stop,
        },
    }
}

/// What becomes of a job that is leased to the worker, when its agent registers and does not claim it.
///
/// An offer stays: it is sent again. What ran is lost; what was being cancelled is cancelled.
pub fn unclaimed(now: Timestamp, job: Job) -> Job {
    match job.state {
        State::Starting { .. } | State::Running { .. } | State::Cancelling { .. } => job.lost(now, Loss::AgentForgot),
        _ => job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::spec;
    use crate::domain::job::Demand;

    const NOW: Timestamp = Timestamp(1_000);

    fn worker(n: u8) -> WorkerId {
        WorkerId::new(NOW, [n; 10])
    }

    fn offered() -> Job {
        let job = Job::submitted(JobId::new(NOW, [9; 10]), spec(Demand::default()), NOW, "ada".to_owned());
        job.offered(NOW, worker(1), vec![], Timestamp(2_000)).expect("it waits")
    }

    fn running() -> Job {
        offered().reported(NOW, &worker(1), Attempt(1), Report::Running).expect("current")
    }

    fn verdict(claim_of: u8, attempt: Option<u32>, job: Option<&Job>) -> Option<&'static str> {
        let claim = Claim { job: JobId::new(NOW, [9; 10]), attempt: attempt.map(Attempt) };
        match judge(NOW, &worker(claim_of), &claim, job) {
            Verdict::Stop => None,
            Verdict::Keep(job) => Some(match job.state {
                State::Running { .. } => "running",
                State::Cancelling { .. } => "cancelling",
                _ => "other",
            }),
        }
    }

    #[test]
    fn claims_row_by_row() {
        let lost = running().lost(NOW, Loss::WorkerOffline);
        let moved = lost.clone().offered(NOW, worker(2), vec![], Timestamp(2_000)).expect("it waits");
        let cancelling = running().cancelled(NOW).expect("it runs");
        let ended = running().reported(NOW, &worker(1), Attempt(1), Report::Completed).expect("current");
        let rows = [
            (1, Some(1), Some(&running()), Some("running")),
            (1, None, Some(&running()), Some("running")),
            (1, Some(1), Some(&offered()), Some("running")),
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
        let later = Timestamp(NOW.0 + 5);
        assert_eq!(judge(later, &worker(1), &claim, Some(&cancelling)), Verdict::Keep(Box::new(cancelling)));
    }

    #[test]
    fn what_is_not_claimed_is_lost_unless_it_was_only_offered() {
        assert_eq!(unclaimed(NOW, offered()), offered());
        assert!(matches!(unclaimed(NOW, running()).state, State::Queued { not_before: Some(_), .. }));
        let cancelling = running().cancelled(NOW).expect("it runs");
        assert!(matches!(unclaimed(NOW, cancelling).state, State::Cancelled { .. }));
    }
}
