//! Reports on attempts, as `agents/attempt_reports.rs` and `jobs/fencing_delay.rs`.

use app::domain::ids::AttemptNumber;
use app::domain::job::{AttemptReport, Job};
use app::domain::reconcile::resources_are_taken;
use app::domain::worker::Worker;

use crate::config::Mutation;
use crate::messages::{Rejection, Report};
use crate::rows::{Key, worker_id};
use crate::service::Service;
use crate::ticks::NOW;

impl Service<'_> {
    /// `report_status` in `agents/attempt_reports.rs`.
    pub fn report(&mut self, sender: usize, key: Key, report: Report) -> Result<(), Rejection> {
        let n = usize::from(key.0);
        let before = self.job(n).ok_or(Rejection::Conflict)?;
        let (mut worker, mut attempt) = (worker_id(sender), AttemptNumber(key.1.into()));
        if self.is_mutated(Mutation::OldReportsAccepted)
            && let Some(lease) = before.last_lease()
        {
            (worker, attempt) = (lease.worker.clone(), lease.attempt);
        }
        if before.active_lease().is_some_and(|lease| lease.worker == worker && lease.attempt == attempt) {
            self.record_contact(sender);
        }
        let stored = self.worker(sender);
        let report = classify(report, stored.as_ref(), &before);
        let after = before.clone().reported(NOW, &worker, attempt, report).map_err(|_| Rejection::Conflict)?;
        let held = if self.is_mutated(Mutation::RecoveredWithoutResources) { Vec::new() } else { self.held(sender) };
        if resources_are_taken(&before, &after, stored.as_ref(), &held) {
            return Err(Rejection::Conflict);
        }
        self.save_job(n, &after);
        if before.active_lease().is_some() && after.active_lease().is_none() {
            self.plan();
        }
        Ok(())
    }

    /// `report_progress`: the response renews the lease, so the fencing delay of a lost attempt is extended.
    pub fn progress(&mut self, host: usize, key: Key) -> Result<(), Rejection> {
        let n = usize::from(key.0);
        let (worker, attempt) = (worker_id(host), AttemptNumber(key.1.into()));
        let job = self.job(n).ok_or(Rejection::Conflict)?;
        if job.active_lease().is_some_and(|lease| lease.worker == worker && lease.attempt == attempt) {
            self.record_contact(host);
        }
        job.check_current_attempt(&worker, attempt).map_err(|_| Rejection::Conflict)?;
        self.renew_fencing_delay(n, &job);
        Ok(())
    }

    /// `renew_fencing_delay` in `jobs/fencing_delay.rs`: of a job, and of retries that wait for its attempt.
    pub fn renew_fencing_delay(&mut self, n: usize, before: &Job) {
        if before.hold_until.is_none()
            || before.last_lease().is_none()
            || self.is_mutated(Mutation::FencingDelayNotRenewed)
        {
            return;
        }
        self.save_job(n, &before.clone().hold_renewed(NOW, self.lease()));
        if !before.has_ended() {
            return;
        }
        for retry in 0..self.world.database.jobs.len() {
            if let Some(job) = self.job(retry)
                && job.retry_of.as_ref() == Some(&before.id)
                && job.attempt == AttemptNumber(0)
                && job.state.waiting().is_some()
            {
                self.save_job(retry, &job.hold_renewed(NOW, self.lease()));
            }
        }
    }
}

/// `classify_report`: an attempt that stops at the deadline of a drain is requeued without a loss.
fn classify(report: Report, worker: Option<&Worker>, job: &Job) -> AttemptReport {
    let evicts = worker.is_some_and(|worker| worker.should_evict(NOW)) && job.exceeded_runtime(NOW).is_none();
    match report {
        Report::Starting => AttemptReport::Starting,
        Report::Running => AttemptReport::Running,
        Report::Completed => AttemptReport::Completed,
        Report::Failed => AttemptReport::Failed { exit_code: Some(1), error: String::new() },
        Report::Cancelled | Report::Requeue if evicts => AttemptReport::Evicted,
        Report::Cancelled => AttemptReport::Cancelled,
        Report::Requeue => AttemptReport::Requeue { error: String::new() },
    }
}
