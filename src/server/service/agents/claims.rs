//! Claims of agents: the attempts that they say they run.

use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::reconcile::{AttemptClaim, ClaimVerdict, judge_claim};
use app::domain::worker::Worker;
use app::protocol::agents::{HeartbeatRequest, RegisterRequest, StopAttempt, StopReason};

use crate::service::error::ServiceError;
use crate::service::unit_of_work::UnitOfWork;
use crate::service::workers::withdraw_offers;
use crate::store::cache::state::FleetState;

/// Accepts the claims of a worker: recovers a lost attempt, and treats an unanswered offer as accepted. Returns what
/// the agent must stop.
pub(super) async fn accept_claims(
    unit: &mut UnitOfWork<'_>,
    worker: &Worker,
    claims: &[AttemptClaim],
) -> Result<Vec<StopAttempt>, ServiceError> {
    let mut stop = Vec::new();
    for claim in claims {
        let before = unit.tx.job(&claim.job).await?;
        let held = unit.tx.leased_jobs(Some(&worker.id)).await?;
        match (judge_claim(unit.now, worker, &held, claim, before.as_ref()), before) {
            (ClaimVerdict::Keep(after), Some(before)) => unit.save_job(&before, &after).await?,
            (_, job) => {
                let stopped = stop_superseded(claim, job.as_ref());
                // The response renews the agent's lease, and its trainer runs until it has stopped.
                let is_newest = |job: &&Job| job.is_newest_attempt(&worker.id, stopped.attempt);
                if let Some(job) = job.as_ref().filter(is_newest) {
                    unit.renew_fencing_delay(job).await?;
                }
                stop.push(stopped);
            }
        }
    }
    Ok(stop)
}

/// Ends the claim of a worker's former installation, which may still run, on what the new one does not run: an offer that
/// both have received would be accepted twice.
pub(super) async fn abandon_attempts(unit: &mut UnitOfWork<'_>, worker: &WorkerId) -> Result<(), ServiceError> {
    // Claims have accepted the offers that they are about.
    withdraw_offers(unit, worker).await?;
    let find = |fleet_state: &FleetState| -> Vec<Job> {
        let is_of_worker = |job: &&Job| job.last_lease().is_some_and(|lease| lease.worker == *worker);
        fleet_state.queued_jobs().filter(is_of_worker).cloned().collect()
    };
    for before in unit.tx.with_state(find).await? {
        let after = before.clone().attempt_abandoned();
        unit.save_job(&before, &after).await?;
    }
    Ok(())
}

pub(super) fn registration_claims(register: &RegisterRequest) -> Vec<AttemptClaim> {
    let reported = register.attempts.iter().map(|a| AttemptClaim { job: a.job_id.clone(), attempt: Some(a.attempt) });
    let mut claims: Vec<AttemptClaim> = reported.collect();
    if let Some(job) = register.current_job_id.as_ref().filter(|job| claims.iter().all(|claim| claim.job != **job)) {
        claims.push(AttemptClaim { job: job.clone(), attempt: None });
    }
    claims
}

pub(super) fn heartbeat_claims(heartbeat: &HeartbeatRequest) -> Vec<AttemptClaim> {
    // An older agent names its job only, which does not claim a lost attempt; see `unassigned_run`.
    heartbeat.attempts.iter().map(|a| AttemptClaim { job: a.job_id.clone(), attempt: Some(a.attempt) }).collect()
}

/// Stops what an agent claims to run. A claim without an attempt means the newest.
fn stop_superseded(claim: &AttemptClaim, job: Option<&Job>) -> StopAttempt {
    let attempt = claim.attempt.or(job.map(|job| job.attempt)).unwrap_or_default();
    StopAttempt { job_id: claim.job.clone(), attempt, reason: StopReason::Superseded }
}
