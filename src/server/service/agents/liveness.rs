//! Liveness of workers. Each is judged separately, so that an error with one does not stop the pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::{JobId, WorkerId};
use app::domain::liveness::LivenessVerdict;
use app::domain::time::Timestamp;
use app::domain::worker::OfflineCause;
use app::protocol::topic::Topic;
use serde_json::json;

use crate::service::agents::AgentService;
use crate::service::context::presence::last_seen;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::service::workers::liveness::{liveness_verdict, log_offline};
use crate::service::workers::{lose_leases, remove_worker};
use crate::store::cache::fleet_worker::FleetWorker;
use crate::store::cache::state::FleetState;

/// The result of one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealthPass {
    /// Workers that were marked offline, or have not returned to their attempts.
    pub offline: usize,
    /// Workers that were removed.
    pub removed: usize,
    /// Workers that could not be judged; the log has the reason.
    pub failed: usize,
}

impl AgentService {
    /// Marks silent workers offline and requeues their jobs; notifies workers with attempts to stop.
    pub async fn check_health(self: &Arc<Self>) -> Result<HealthPass, ServiceError> {
        let mut pass = HealthPass::default();
        let now = self.context.now();
        let needs_action =
            |FleetWorker { stored, jobs, .. }: &FleetWorker| match liveness_verdict(&self.context, stored, now) {
                None => false,
                Some(LivenessVerdict::HeartbeatTimeout | LivenessVerdict::Removed) => true,
                Some(LivenessVerdict::NotReturned) => !jobs.is_empty(),
            };
        let find_workers = |fleet_state: &FleetState| {
            let workers = fleet_state.workers().filter(|row| needs_action(row)).map(FleetWorker::worker);
            let workers = workers.map(|worker| (worker.id.clone(), worker.name.clone()));
            (workers.collect::<Vec<_>>(), workers_with_stops(fleet_state, now))
        };
        let (workers, stops) = self.context.read_recent().await?.with_state(find_workers).await?;
        for worker in stops {
            self.notify_worker(worker).await?;
        }
        for (worker, name) in workers {
            let id = worker.clone();
            let outcome = self.context.change(Caller::system(), move |unit| {
                let id = id.clone();
                Box::pin(async move { judge_and_apply(unit, &id).await })
            });
            match outcome.await {
                Ok(Some(verdict @ (LivenessVerdict::HeartbeatTimeout | LivenessVerdict::NotReturned))) => {
                    if verdict == LivenessVerdict::HeartbeatTimeout {
                        log_offline(&worker, &name, OfflineCause::HeartbeatTimeout);
                    }
                    self.readings.forget(&worker);
                    pass.offline += 1;
                }
                Ok(Some(LivenessVerdict::Removed)) => {
                    self.context.presence.forget(&worker);
                    self.takeovers.forget(&worker);
                    self.readings.forget(&worker);
                    pass.removed += 1;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%worker, ?error, "health check: failed to process a worker");
                    pass.failed += 1;
                }
            }
        }
        Ok(pass)
    }

    /// Sends a change notification about a worker, on every server, although nothing is stored.
    pub(in crate::service) async fn notify_worker(self: &Arc<Self>, worker: WorkerId) -> Result<(), ServiceError> {
        let notified = self.context.change(Caller::system(), move |unit| {
            unit.notify(Topic::Worker(worker.clone()));
            Box::pin(async { Ok(()) })
        });
        notified.await
    }
}

/// The workers whose drain deadline has passed, or that run a job longer than its maximum run time.
fn workers_with_stops(fleet_state: &FleetState, now: Timestamp) -> BTreeSet<WorkerId> {
    let evicts = |id: &WorkerId| fleet_state.worker(id).is_some_and(|stored| stored.worker.should_evict(now));
    let held = fleet_state.jobs_with_lease().filter_map(|job| Some((job, &job.active_lease()?.worker)));
    held.filter(|(job, worker)| job.exceeded_runtime(now).is_some() || evicts(worker))
        .map(|(_, worker)| worker.clone())
        .collect()
}

/// The jobs that a worker runs.
async fn running_jobs(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<Vec<JobId>, ServiceError> {
    let held = unit.tx.leased_jobs(Some(worker)).await?;
    Ok(held.into_iter().filter(|job| job.state.status().is_at_work()).map(|job| job.id).collect())
}

/// Judges again inside the transaction, and applies the verdict.
async fn judge_and_apply(unit: &mut UnitOfWork<'_>, id: &WorkerId) -> Result<Option<LivenessVerdict>, ServiceError> {
    let Some(stored) = unit.tx.worker(id).await? else { return Ok(None) };
    let verdict = liveness_verdict(unit.context, &stored, unit.now);
    match verdict {
        None => {}
        Some(LivenessVerdict::HeartbeatTimeout) => {
            let cause = OfflineCause::HeartbeatTimeout;
            let lost_jobs = running_jobs(unit, id).await?;
            let after = stored.worker.clone().went_offline(unit.now, cause).with_lost_jobs(lost_jobs);
            let detail = json!({"cause": cause, "last_seen": last_seen(unit.context, &stored)});
            unit.save_worker(&stored.worker, &after, AuditAction::WorkerOffline, &detail).await?;
            lose_leases(unit, id).await?;
            unit.request_planning();
        }
        Some(LivenessVerdict::NotReturned) => {
            lose_leases(unit, id).await?;
            unit.request_planning();
        }
        Some(LivenessVerdict::Removed) => remove_worker(unit, &stored.worker, AuditAction::WorkerRemoved).await?,
    }
    Ok(verdict)
}
