//! Fencing of exclusive jobs. Their agents measure the lease from their last request that was answered; so an answer about a
//! lost attempt extends the delay of its job by a whole lease.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::AttemptNumber;
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
    pub async fn hold_all(self: &Arc<Self>) -> Result<(), ServiceError> {
        self.context
            .change(Caller::system(), |unit| {
                Box::pin(async move {
                    let waits = |job: &&Arc<Job>| job.spec.exclusive && job.state.waiting().is_some();
                    let waiting = move |known: &FleetState| known.jobs().filter(waits).cloned().collect();
                    let waiting: Vec<Arc<Job>> = unit.tx.with_state(waiting).await?;
                    for before in waiting {
                        let after =
                            Job::clone(&before).held_after_restore(unit.now, unit.context.policy.heartbeat_timeout);
                        unit.hold_job(&before, after).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Extends the delay before a request about an attempt of this job is answered.
    pub(in crate::service) async fn renew_hold(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
        job: &Job,
        attempt: AttemptNumber,
    ) -> Result<(), ServiceError> {
        // A job without a delay needs no look-up of its worker.
        if job.hold_until.is_none() {
            return Ok(());
        }
        let subject = Arc::new(attempt_ref.clone());
        self.context
            .change(Caller::system(), move |unit| {
                let subject = Arc::clone(&subject);
                Box::pin(async move {
                    // The job may have been offered to another worker since.
                    let job = unit.job(&subject.job).await?;
                    job.check_current_attempt(&subject.worker, attempt)?;
                    unit.renew_hold(&job).await
                })
            })
            .await
    }
}

impl UnitOfWork<'_> {
    /// Extends the delay before a request about the newest attempt of this job is answered.
    pub(in crate::service) async fn renew_hold(&mut self, before: &Job) -> Result<(), ServiceError> {
        let Some(lease) = before.last_lease().filter(|_| before.hold_until.is_some()) else { return Ok(()) };
        let worker = self.tx.worker(&lease.worker).await?;
        let lease = self.context.policy.worker_lease(worker.as_ref().map(|stored| &stored.worker));
        let after = before.clone().hold_renewed(self.now, lease);
        self.hold_job(before, after).await
    }

    async fn hold_job(&mut self, before: &Job, after: Job) -> Result<(), ServiceError> {
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
