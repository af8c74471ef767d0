//! Health of hosts: agents report a full disk with registrations and heartbeats, and such hosts get no new jobs. It is
//! part of the worker's state, and written when it changes.

use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::worker::Worker;
use serde_json::json;

use crate::service::agents::AgentService;
use crate::service::error::ServiceError;
use crate::service::gpus::truncate_detail;
use crate::service::unit_of_work::UnitOfWork;

/// The stated reason, validated and shortened.
pub fn checked_reason(unhealthy_reason: Option<&str>) -> Option<String> {
    unhealthy_reason.map(truncate_detail)
}

/// Writes a changed health of a worker's host, and plans.
pub async fn apply_host_health(
    unit: &mut UnitOfWork<'_>,
    worker: &WorkerId,
    reason: Option<&str>,
) -> Result<(), ServiceError> {
    let before = unit.worker(worker).await?.worker;
    let after = before.clone().host_health_reported(reason.map(str::to_owned));
    unit.save_worker(&before, &after, AuditAction::WorkerHostHealth, &json!({ "unhealthy_reason": reason })).await?;
    if before != after {
        unit.request_planning();
    }
    Ok(())
}

impl AgentService {
    /// Returns whether the health is to be written. A change of the reason only is rate-limited.
    pub(in crate::service) fn changes_host_health(&self, worker: &Worker, unhealthy_reason: Option<&str>) -> bool {
        let Some(capability) = worker.capability() else { return false };
        let current = capability.unhealthy_reason.as_deref();
        if current.is_some() && unhealthy_reason.is_none() {
            // Each change is written; a host that alternates stays unhealthy until the rate limit allows another one.
            return self.access.check_worker_change_rate(&worker.id).is_ok();
        }
        current.is_some() != unhealthy_reason.is_some()
            || (current != unhealthy_reason && self.readings.may_update_detail(&worker.id, self.context.now()))
    }
}
