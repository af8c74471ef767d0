//! Applies what agents claim to run; see `app::domain::unassigned_run`.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::job::AttemptReport;
use app::domain::unassigned_run::{OlderAgentClaim, accepted_offer, changes_unassigned_run, find_unassigned_run};
use app::domain::worker::Worker;
use app::protocol::agents::HeartbeatRequest;
use serde_json::json;

use crate::service::agents::AgentService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};

impl AgentService {
    /// Records a rejected report. An older agent learns of it only by its stream.
    pub(in crate::service) async fn record_rejected_report(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        claim: OlderAgentClaim,
    ) {
        if let Err(error) = self.record_claim(caller, worker.clone(), claim).await {
            tracing::error!(%worker, ?error, "failed to record what an agent runs");
        }
    }

    /// Repeats a stop on the agent's stream after the agent has claimed the attempt again.
    pub(in crate::service) async fn resend_stop(
        self: &Arc<Self>,
        worker: &Worker,
        claim: &OlderAgentClaim,
    ) -> Result<(), ServiceError> {
        match (&worker.unassigned_run, claim) {
            (Some(_), OlderAgentClaim::Running(_)) => self.notify_worker(worker.id.clone()).await,
            _ => Ok(()),
        }
    }

    async fn record_claim(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        claim: OlderAgentClaim,
    ) -> Result<(), ServiceError> {
        let mut tx = self.context.read_recent().await?;
        let Some(stored) = tx.worker(&worker).await? else { return Ok(()) };
        if !changes_unassigned_run(&stored.worker, &tx.leased_jobs(Some(&worker)).await?, &claim) {
            drop(tx);
            return self.resend_stop(&stored.worker, &claim).await;
        }
        drop(tx);
        let input = Arc::new((worker, claim));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move { apply_claim(unit, &input.0, &input.1).await })
            })
            .await
    }
}

/// Applies the claim of a heartbeat: the agent may have accepted an offer.
pub async fn apply_heartbeat_claim(
    unit: &mut UnitOfWork<'_>,
    worker: &Worker,
    claim: &OlderAgentClaim,
) -> Result<(), ServiceError> {
    let held = unit.tx.leased_jobs(Some(&worker.id)).await?;
    if let Some(job) = accepted_offer(worker, &held, claim) {
        let after = job.clone().reported(unit.now, &worker.id, job.attempt, AttemptReport::Starting)?;
        unit.save_job(job, &after).await?;
    }
    apply_claim(unit, &worker.id, claim).await
}

/// Applies a claim of a worker's agent.
pub async fn apply_claim(
    unit: &mut UnitOfWork<'_>,
    worker: &WorkerId,
    claim: &OlderAgentClaim,
) -> Result<(), ServiceError> {
    let Some(stored) = unit.tx.worker(worker).await? else { return Ok(()) };
    let (before, held) = (stored.worker, unit.tx.leased_jobs(Some(worker)).await?);
    let after = Worker { unassigned_run: find_unassigned_run(&before, &held, claim), ..before.clone() };
    unit.save_worker(&before, &after, AuditAction::WorkerUnassignedRun, &json!({"job_id": after.unassigned_run}))
        .await?;
    if before.unassigned_run.is_some() && after.unassigned_run.is_none() {
        unit.request_planning();
    }
    Ok(())
}

pub fn legacy_claim(heartbeat: &HeartbeatRequest) -> Option<OlderAgentClaim> {
    match (heartbeat.status.as_deref(), &heartbeat.current_job_id) {
        (Some("busy"), Some(job)) => Some(OlderAgentClaim::Running(job.clone())),
        (Some("idle"), _) => Some(OlderAgentClaim::Idle),
        _ => None,
    }
}
