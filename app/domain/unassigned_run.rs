//! Older agents that run jobs which are not assigned to them.
//!
//! They ignore all responses except that to their registration, so an error does not stop them. The job that such an
//! agent claims to run is stored with its worker until the agent claims something else. Until then, its stream sends
//! it the stop, and it gets no offers, which it would ignore.

use super::ids::JobId;
use super::job::{AttemptReport, Job, JobState};
use super::time::{Millis, Timestamp};
use super::worker::Worker;

/// What an older agent claims in a heartbeat or a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OlderAgentClaim {
    /// It runs nothing.
    Idle,
    /// It runs this job; older agents do not know the attempt.
    Running(JobId),
}

impl OlderAgentClaim {
    /// Returns what a report on a job implies about the agent.
    pub fn from_report(job: &JobId, report: &AttemptReport) -> Self {
        match report {
            AttemptReport::Starting | AttemptReport::Running => Self::Running(job.clone()),
            AttemptReport::Completed
            | AttemptReport::Failed { .. }
            | AttemptReport::Cancelled
            | AttemptReport::Requeue { .. }
            | AttemptReport::Evicted
            | AttemptReport::Preempted { .. }
            | AttemptReport::HostUnhealthy { .. } => Self::Idle,
        }
    }
}

/// Returns the job that an agent with this claim runs without a lease, given the jobs with an active lease of its
/// worker.
///
/// Current agents read responses and name attempts. A worker that has accepted a job runs that job: an older agent runs
/// one at a time, and would stop whatever it runs.
pub fn find_unassigned_run(worker: &Worker, held: &[Job], claim: &OlderAgentClaim) -> Option<JobId> {
    let OlderAgentClaim::Running(job) = claim else { return None };
    let has_assigned_run =
        held.iter().any(|held_job| held_job.id == *job || !matches!(held_job.state, JobState::Offered { .. }));
    (worker.has_older_agent() && !has_assigned_run).then(|| job.clone())
}

/// Normalizes the report of an older agent: it reports `failed` for a trainer that was killed, with the signal as a
/// negative exit code. That is a lost attempt, as after a host failure, not a failure of the training.
pub fn normalize_older_report(report: AttemptReport) -> AttemptReport {
    match report {
        AttemptReport::Failed { exit_code: None, error }
            if parse_exit_signal(&error).is_some_and(|signal| KILL_SIGNALS.contains(&signal)) =>
        {
            AttemptReport::Requeue { error }
        }
        report => report,
    }
}

/// Returns whether an older agent has had a job for too long without reporting that the training began: it reports this
/// immediately after the start of the trainer, so the start has failed.
pub fn start_timed_out(now: Timestamp, worker: &Worker, job: &Job) -> bool {
    let JobState::Starting { since, .. } = job.state else { return false };
    worker.has_older_agent() && now - since >= START_TIMEOUT
}

/// How long an older agent may take to start a trainer.
const START_TIMEOUT: Millis = Millis::from_secs(600);

/// SIGHUP, SIGINT, SIGKILL, SIGTERM: sent from outside, not caused by the trainer.
const KILL_SIGNALS: [u8; 4] = [1, 2, 9, 15];

/// Parses the signal from an older agent's error: `Training exited with code -15`.
fn parse_exit_signal(error: &str) -> Option<u8> {
    error.rsplit_once(" code -")?.1.trim().parse().ok()
}

/// Returns whether a claim changes the stored unassigned run.
pub fn changes_unassigned_run(worker: &Worker, held: &[Job], claim: &OlderAgentClaim) -> bool {
    find_unassigned_run(worker, held, claim) != worker.unassigned_run
}

/// Returns the offered job that an older agent accepted, if it claims by a heartbeat that it runs the job. Its report
/// of this may have been lost, and is sent only once.
pub fn accepted_offer<'j>(worker: &Worker, held: &'j [Job], claim: &OlderAgentClaim) -> Option<&'j Job> {
    let OlderAgentClaim::Running(job) = claim else { return None };
    held.iter().find(|held_job| {
        worker.has_older_agent() && held_job.id == *job && matches!(held_job.state, JobState::Offered { .. })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::fixtures::{NOW, job, job_id, unseen_worker, worker, worker_id};
    use crate::domain::job::Demand;
    use crate::domain::worker::WorkerKind;

    fn older() -> Worker {
        let registered = unseen_worker(1).registered(NOW, Capability::default(), WorkerKind::Persistent);
        registered.stream_opened(NOW, "s").expect("registered")
    }

    fn offered(n: u16) -> Job {
        job(n, Demand::default()).offered(NOW, worker_id(1), vec![], NOW).expect("queued")
    }

    fn after(n: u16, report: AttemptReport) -> Job {
        offered(n).reported(NOW, &worker_id(1), offered(n).attempt, report).expect("current")
    }

    fn runs(n: u16) -> OlderAgentClaim {
        OlderAgentClaim::Running(job_id(n))
    }

    #[test]
    fn unassigned_run_table() {
        let cancelling = after(8, AttemptReport::Running).cancelled(NOW).expect("running");
        let rows = [
            (older(), vec![], runs(9), Some(job_id(9))),
            (older(), vec![], OlderAgentClaim::Idle, None),
            (worker(1, &[], 1), vec![], runs(9), None),
            (unseen_worker(1), vec![], runs(9), None),
            (older(), vec![offered(9)], runs(9), None),
            (older(), vec![after(9, AttemptReport::Running)], runs(9), None),
            (older(), vec![offered(8)], runs(9), Some(job_id(9))),
            (older(), vec![after(8, AttemptReport::Starting)], runs(9), None),
            (older(), vec![after(8, AttemptReport::Running)], runs(9), None),
            (older(), vec![cancelling], runs(9), None),
        ];
        for (n, (worker, held, claim, expected)) in rows.into_iter().enumerate() {
            assert_eq!(find_unassigned_run(&worker, &held, &claim), expected, "row {n}");
        }
    }

    #[test]
    fn repeated_claim_changes_nothing() {
        let running_unassigned = Worker { unassigned_run: Some(job_id(9)), ..older() };
        let changes = |claim| changes_unassigned_run(&running_unassigned, &[], &claim);
        assert_eq!((changes(runs(9)), changes(runs(8)), changes(OlderAgentClaim::Idle)), (false, true, true));
    }

    #[test]
    fn heartbeat_accepts_only_an_older_agents_own_offer() {
        let rows = [
            (older(), offered(9), runs(9), true),
            (older(), offered(9), runs(8), false),
            (older(), offered(9), OlderAgentClaim::Idle, false),
            (worker(1, &[], 1), offered(9), runs(9), false),
            (older(), after(9, AttemptReport::Running), runs(9), false),
        ];
        for (n, (worker, job, claim, expected)) in rows.into_iter().enumerate() {
            assert_eq!(accepted_offer(&worker, &[job], &claim).is_some(), expected, "row {n}");
        }
    }

    #[test]
    fn killed_trainer_is_not_a_failure() {
        let failed = |exit_code, error: &str| AttemptReport::Failed { exit_code, error: error.to_owned() };
        for signal in [1, 2, 9, 15] {
            let error = format!("Training exited with code -{signal}");
            assert_eq!(normalize_older_report(failed(None, &error)), AttemptReport::Requeue { error });
        }
        let unchanged = [
            failed(None, "Training exited with code 1"),
            failed(None, "Training exited with code -11"),
            failed(None, "Training exited with code -15 and more"),
            failed(Some(-15), "Training exited with code -15"),
            failed(None, ""),
            AttemptReport::Completed,
        ];
        for report in unchanged {
            assert_eq!(normalize_older_report(report.clone()), report);
        }
    }

    #[test]
    fn claims_from_reports() {
        let failed = AttemptReport::Failed { exit_code: None, error: String::new() };
        let returned = AttemptReport::Requeue { error: String::new() };
        for report in [AttemptReport::Starting, AttemptReport::Running] {
            assert_eq!(OlderAgentClaim::from_report(&job_id(9), &report), runs(9));
        }
        for report in [AttemptReport::Completed, failed, AttemptReport::Cancelled, returned, AttemptReport::Evicted] {
            assert_eq!(OlderAgentClaim::from_report(&job_id(9), &report), OlderAgentClaim::Idle);
        }
    }

    #[test]
    fn registration_or_disconnect_clears_the_unassigned_run() {
        let running_unassigned = Worker { unassigned_run: Some(job_id(9)), ..older() };
        assert_eq!(
            running_unassigned.clone().stream_opened(NOW, "t").expect("registered").unassigned_run,
            Some(job_id(9))
        );
        assert_eq!(running_unassigned.clone().stream_closed(NOW, "s").unassigned_run, Some(job_id(9)));
        assert_eq!(
            running_unassigned.clone().registered(NOW, Capability::default(), WorkerKind::Persistent).unassigned_run,
            None
        );
        assert_eq!(
            running_unassigned.went_offline(NOW, crate::domain::worker::OfflineCause::HeartbeatTimeout).unassigned_run,
            None
        );
    }
}
