//! Fencing of exclusive jobs. Their agents measure the lease from their last request that got a response; so a response
//! about a lost attempt extends the fencing delay of its job, and of the job's retries, by a whole lease.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::Job;
use app::protocol::topic::Topic;
use serde_json::json;

use crate::service::attempt_ref::AttemptRef;
use crate::service::error::ServiceError;
use crate::service::jobs::JobService;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::cache::state::FleetState;

impl JobService {
    /// Delays all waiting exclusive jobs after a restore: they may have been offered since the backup.
    pub async fn delay_exclusive_jobs(self: &Arc<Self>) -> Result<(), ServiceError> {
        self.context
            .change(Caller::system(), |unit| {
                Box::pin(async move {
                    let is_waiting_exclusive = |job: &&Arc<Job>| job.spec.exclusive && job.state.waiting().is_some();
                    let waiting = move |fleet_state: &FleetState| {
                        fleet_state.jobs().filter(is_waiting_exclusive).cloned().collect()
                    };
                    let waiting: Vec<Arc<Job>> = unit.tx.with_state(waiting).await?;
                    for before in waiting {
                        let after =
                            Job::clone(&before).held_after_restore(unit.now, unit.context.policy.heartbeat_timeout);
                        unit.save_fencing_delay(&before, after).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Extends the fencing delay before a request about an attempt of this job is answered.
    pub(in crate::service) async fn renew_fencing_delay(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
        job: &Job,
        attempt: AttemptNumber,
    ) -> Result<(), ServiceError> {
        // A job without a delay needs no look-up of its worker.
        if job.hold_until.is_none() {
            return Ok(());
        }
        let attempt_ref = Arc::new(attempt_ref.clone());
        self.context
            .change(Caller::system(), move |unit| {
                let attempt_ref = Arc::clone(&attempt_ref);
                Box::pin(async move {
                    // The job may have been offered to another worker since.
                    let job = unit.job(&attempt_ref.job).await?;
                    job.check_current_attempt(&attempt_ref.worker, attempt)?;
                    unit.renew_fencing_delay(&job).await
                })
            })
            .await
    }
}

impl UnitOfWork<'_> {
    /// Extends the fencing delay before a request about the newest attempt of this job is answered. If the job has ended,
    /// its retries wait for the same attempt.
    pub(in crate::service) async fn renew_fencing_delay(&mut self, before: &Job) -> Result<(), ServiceError> {
        let Some(lease) = before.last_lease().filter(|_| before.hold_until.is_some()) else { return Ok(()) };
        let worker = self.tx.worker(&lease.worker).await?;
        let lease = self.context.policy.worker_lease(worker.as_ref().map(|stored| &stored.worker));
        let retries = if before.has_ended() { self.waiting_retries(&before.id).await? } else { Vec::new() };
        for job in std::iter::once(before).chain(retries.iter().map(Arc::as_ref)) {
            let after = job.clone().hold_renewed(self.now, lease);
            self.save_fencing_delay(job, after).await?;
        }
        Ok(())
    }

    /// The jobs that retry an ended one and still wait for its last attempt to stop.
    async fn waiting_retries(&mut self, ended: &JobId) -> Result<Vec<Arc<Job>>, ServiceError> {
        let is_held = |job: &&Arc<Job>| job.hold_until.is_some() && job.state.waiting().is_some() && !was_offered(job);
        let held: Vec<Arc<Job>> =
            self.tx.with_state(|fleet_state| fleet_state.jobs().filter(is_held).cloned().collect()).await?;
        let mut retries = Vec::new();
        for job in held {
            if self.last_offered(&job).await?.is_some_and(|offered| offered.id == *ended) {
                retries.push(job);
            }
        }
        Ok(retries)
    }

    /// Gives a new retry the fencing delay of the job whose attempt it waits for, which may have been extended.
    pub(super) async fn inherit_fencing_delay(&mut self, retry: Job) -> Result<Job, ServiceError> {
        if retry.hold_until.is_none() {
            return Ok(retry);
        }
        let offered = self.last_offered(&retry).await?;
        let hold_until = retry.hold_until.max(offered.and_then(|job| job.hold_until));
        Ok(Job { hold_until, ..retry })
    }

    /// The last job with an attempt before a retry: the one that it retries, unless that is itself a retry that was
    /// cancelled before its first offer.
    async fn last_offered(&mut self, retry: &Job) -> Result<Option<Job>, ServiceError> {
        let mut retried = retry.retry_of.clone();
        while let Some(id) = retried {
            let Some(job) = self.tx.job(&id).await? else { return Ok(None) };
            if was_offered(&job) {
                return Ok(Some(job));
            }
            retried = job.retry_of;
        }
        Ok(None)
    }

    async fn save_fencing_delay(&mut self, before: &Job, after: Job) -> Result<(), ServiceError> {
        if after == *before {
            return Ok(());
        }
        self.tx.update_job(before, &after).await?;
        let detail = json!({"attempt": after.attempt, "until": after.hold_until});
        self.record(AuditAction::JobHeld, after.id.as_str(), &detail).await?;
        self.notify(Topic::Job(after.id));
        Ok(())
    }
}

/// Otherwise its fencing delay is that of the job that it retries.
fn was_offered(job: &Job) -> bool {
    job.attempt > AttemptNumber(0)
}
