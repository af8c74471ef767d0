//! Requests of agents: registration, streams, heartbeats, disconnect.

pub mod admission;
pub mod attempt_reports;
mod claims;
pub mod desired;
pub(super) mod host_health;
pub mod liveness;
pub mod registration;
pub(super) mod unassigned_runs;

use std::sync::Arc;

use app::domain::allowed_values::LimitedItems;
use app::domain::audit::AuditAction;
use app::domain::capability::Capability;
use app::domain::causes::StreamEndCause;
use app::domain::gpu;
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::reconcile::{AttemptClaim, ClaimVerdict, judge_claim, resolve_unclaimed, would_orphan_jobs};
use app::domain::time::Timestamp;
use app::domain::unassigned_run::{OlderAgentClaim, accepted_offer, changes_unassigned_run};
use app::domain::worker::{OfflineCause, Worker, WorkerKind, WorkerTransitionError};
use app::protocol::agents::{
    DesiredState, DisconnectRequest, HeartbeatRequest, HeartbeatResponse, PROTOCOL_VERSION, RegisterRequest,
    RegisterResponse, ResumeJob,
};
use serde_json::json;

use self::admission::RegistrationAdmission;
use self::claims::{abandon_attempts, accept_claims, heartbeat_claims, registration_claims};
use self::desired::load_desired;
use self::host_health::apply_host_health;
use self::registration::parse_capability;
use self::unassigned_runs::{apply_heartbeat_claim, legacy_claim};
use super::error::{InvalidInput, ServiceError};
use super::gpus::{self, MAX_GPUS, apply_gpu_reports, check_telemetry, unavailable_details};
use super::unit_of_work::{Caller, UnitOfWork};
use super::workers::withdraw_offers;
use crate::service::ServiceContext;
use crate::service::access::AccessService;
use crate::service::gpus::GpuService;
use crate::service::jobs::JobService;
use crate::service::workers::WorkerService;
use crate::service::workers::gpu_readings::GpuReadings;
use crate::service::workers::liveness::{liveness_verdict, log_offline};
use crate::service::workers::token_conflict::{TakeoverTracker, host_of_peer, host_of_stream};
use crate::service::workers::tokens::{WorkerAuth, activate_token};
use crate::store::TransactionWork;
use crate::store::cache::state::FleetState;
use crate::tokens;

/// The desired state of a worker, for its stream.
pub struct StreamState {
    pub desired: DesiredState,
    /// The reason for which the agent should exit, in words: for older agents.
    pub shutdown: Option<String>,
    /// When the worker's token expires.
    pub expires_at: Option<Timestamp>,
}

/// Requests and reports of agents.
pub struct AgentService {
    pub admission: RegistrationAdmission,
    pub(super) readings: Arc<GpuReadings>,
    pub(super) takeovers: Arc<TakeoverTracker>,
    pub(super) access: Arc<AccessService>,
    pub(super) workers: Arc<WorkerService>,
    pub(super) jobs: Arc<JobService>,
    pub(super) gpus: Arc<GpuService>,
    pub(super) context: Arc<ServiceContext>,
}

impl AgentService {
    /// Registers an agent that has started or returned. A rejected registration is no sign of life of the worker's
    /// agent.
    pub async fn register(
        self: &Arc<Self>,
        caller: Caller,
        auth: WorkerAuth,
        register: RegisterRequest,
    ) -> Result<RegisterResponse, ServiceError> {
        let capability = parse_capability(&auth.worker, &register)?;
        let _permit = self.admission.begin(&self.context)?;
        let kind = if register.persistent == Some(true) { WorkerKind::Persistent } else { WorkerKind::Ephemeral };
        let claims = registration_claims(&register);
        let takeover_check =
            if capability.is_older_agent() { self.check_legacy_takeover(&auth, &claims).await } else { Ok(()) };
        let session = (!capability.is_older_agent()).then(|| tokens::generate("ws_", &*self.context.random));
        let access = Arc::clone(&self.access);
        let input = Arc::new(RegistrationInput { auth, capability, kind, claims, session, access });
        let (original_input, agent_caller) = (Arc::clone(&input), caller.clone());
        let registration = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let registered = register_in(unit, &input).await?;
                Ok(RegisterResponse { session: input.session.clone(), ..registered })
            })
        });
        let registered = match takeover_check {
            Ok(()) => registration.await,
            Err(error) => Err(error),
        };
        match &registered {
            Ok(_) => self.workers.record_contact(&original_input.auth.worker, original_input.auth.peer),
            Err(ServiceError::WorkerTransition(WorkerTransitionError::TokenInUse)) => {
                let (host, peer) =
                    (original_input.capability.hostname.clone(), original_input.auth.peer.map(|peer| peer.to_string()));
                self.workers
                    .record_token_conflict(agent_caller, &original_input.auth.worker, host.or(peer).as_deref())
                    .await;
            }
            Err(_) => {}
        }
        registered
    }

    /// Older agents do not say which of two on a host they are. Only one that has a job of the worker is known to
    /// return.
    async fn check_legacy_takeover(&self, auth: &WorkerAuth, claims: &[AttemptClaim]) -> Result<(), ServiceError> {
        let held = self.context.read_recent().await?.leased_jobs(Some(&auth.worker)).await?;
        let is_returning = claims.iter().any(|claim| held.iter().any(|job| job.id == claim.job));
        let host = is_returning.then(|| host_of_peer(auth.peer));
        self.workers.check_takeover(&auth.worker, host.as_deref()).await
    }

    /// Records that a worker's stream was opened, or that it polls.
    ///
    /// An agent on another host takes over the connection, but not repeatedly.
    pub async fn stream_opened(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        stream: String,
    ) -> Result<(), ServiceError> {
        if let Some(host) = host_of_stream(&stream)
            && let Err(error) = self.workers.check_takeover(&worker, Some(host)).await
        {
            if matches!(error, ServiceError::WorkerTransition(WorkerTransitionError::TokenInUse)) {
                self.workers.record_token_conflict(caller, &worker, Some(host)).await;
            }
            return Err(error);
        }
        let access = Arc::clone(&self.access);
        self.context
            .change(caller, move |unit| {
                let (access, worker, stream) = (Arc::clone(&access), worker.clone(), stream.clone());
                Box::pin(async move {
                    let before = unit.worker(&worker).await?.worker;
                    let after = before.clone().stream_opened(unit.now, &stream)?;
                    access.check_change_rate(&before, &after)?;
                    unit.save_worker(&before, &after, AuditAction::WorkerOnline, &json!({})).await?;
                    unit.request_planning();
                    Ok(())
                })
            })
            .await
    }

    /// Records that a worker's stream has ended.
    pub async fn stream_closed(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        stream: String,
    ) -> Result<(), ServiceError> {
        self.context
            .change(caller, move |unit| {
                let (worker, stream) = (worker.clone(), stream.clone());
                Box::pin(async move {
                    let before = unit.worker(&worker).await?.worker;
                    let after = before.clone().stream_closed(unit.now, &stream);
                    unit.save_worker(&before, &after, AuditAction::WorkerConnecting, &json!({})).await
                })
            })
            .await
    }

    /// Returns the desired state of a worker for a stream; `None` if the stream is no longer the worker's: a newer one
    /// has replaced it, maybe on another server, or its token was revoked.
    pub async fn desired_for_stream(
        &self,
        auth: &WorkerAuth,
        stream: &str,
    ) -> Result<Option<StreamState>, ServiceError> {
        let mut tx = self.context.read_recent().await?;
        let Some(stored) = tx.worker(&auth.worker).await? else { return Ok(None) };
        let expires_at = match self.workers.check_worker_auth(auth, &stored).await {
            Ok(expires_at) => expires_at,
            Err(ServiceError::WorkerTokenRejected(..)) => return Ok(None),
            Err(error) => return Err(error),
        };
        if stored.worker.stream_id() != Some(stream) {
            return Ok(None);
        }
        let desired = load_desired(&self.context, &mut *tx, &stored).await?;
        let busy = !(desired.run.is_empty() && desired.stop.is_empty() && desired.offers.is_empty());
        let shutdown = stored.worker.shutdown_reason().filter(|_| !busy).map(str::to_owned);
        Ok(Some(StreamState { desired, shutdown, expires_at }))
    }

    /// Returns the desired state of a worker while its token is valid.
    pub async fn desired(&self, auth: &WorkerAuth) -> Result<DesiredState, ServiceError> {
        let mut tx = self.context.read_recent().await?;
        let stored = tx.worker(&auth.worker).await?.ok_or_else(|| ServiceError::WorkerNotFound(auth.worker.clone()))?;
        self.workers.check_worker_auth(auth, &stored).await?;
        load_desired(&self.context, &mut *tx, &stored).await
    }

    /// Processes the claims of a heartbeat, and returns the desired state. The contact was recorded when the request
    /// was authenticated (`record_contact`).
    pub async fn heartbeat(
        self: &Arc<Self>,
        caller: Caller,
        auth: WorkerAuth,
        heartbeat: HeartbeatRequest,
    ) -> Result<HeartbeatResponse, ServiceError> {
        check_heartbeat(&auth.worker, &heartbeat)?;
        let worker = auth.worker;
        let (claims, older_claim, gpu_reports) =
            (heartbeat_claims(&heartbeat), legacy_claim(&heartbeat), gpus::gpu_reports(&heartbeat.telemetry));
        let mut tx = self.context.read_recent().await?;
        let stored = tx.worker(&worker).await?.ok_or_else(|| ServiceError::WorkerNotFound(worker.clone()))?;
        let held = tx.leased_jobs(Some(&worker)).await?;
        self.gpus.record_readings(&stored.worker, &heartbeat.telemetry, &held);
        // The cached state may be outdated: only the transaction decides whether to reject the agent or stop attempts.
        // It is needed if anything would change; a heartbeat that changes nothing costs no commit.
        let cached = &stored.worker;
        let unhealthy_reason = host_health::checked_reason(heartbeat.unhealthy_reason.as_deref());
        let changes_state = |older_claim| {
            changes_unassigned_run(cached, &held, older_claim) || accepted_offer(cached, &held, older_claim).is_some()
        };
        let mut needs_transaction = cached.check_heartbeat().is_err()
            || older_claim.as_ref().is_some_and(changes_state)
            || self.gpus.changes_gpu_availability(cached, &gpu_reports);
        needs_transaction |= self.changes_host_health(cached, unhealthy_reason.as_deref());
        for claim in &claims {
            let job = tx.job(&claim.job).await?;
            let verdict = judge_claim(self.context.now(), &stored.worker, &held, claim, job.as_ref());
            needs_transaction |=
                !matches!((verdict, job), (ClaimVerdict::Keep(after), Some(before)) if *after == before);
        }
        if needs_transaction {
            drop(tx);
            return self.reclaim(caller, worker, claims, older_claim, (gpu_reports, unhealthy_reason)).await;
        }
        let desired = load_desired(&self.context, &mut *tx, &stored).await?;
        drop(tx);
        if let Some(older_claim) = older_claim {
            self.resend_stop(&stored.worker, &older_claim).await?;
        }
        Ok(HeartbeatResponse { desired })
    }

    async fn reclaim(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        claims: Vec<AttemptClaim>,
        older_claim: Option<OlderAgentClaim>,
        host_report: (Vec<gpu::GpuReport>, Option<String>),
    ) -> Result<HeartbeatResponse, ServiceError> {
        let input = Arc::new((worker, claims, older_claim, host_report));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (worker, claims, older_claim, (gpus, unhealthy_reason)) = &*input;
                    let stored = unit.worker(worker).await?;
                    stored.worker.check_heartbeat()?;
                    let stop = accept_claims(unit, &stored.worker, claims).await?;
                    if let Some(older_claim) = older_claim {
                        apply_heartbeat_claim(unit, &stored.worker, older_claim).await?;
                    }
                    apply_gpu_reports(unit, worker, gpus).await?;
                    apply_host_health(unit, worker, unhealthy_reason.as_deref()).await?;
                    let stored = unit.worker(worker).await?;
                    let mut desired = load_desired(unit.context, unit.tx, &stored).await?;
                    desired.stop.extend(stop);
                    Ok(HeartbeatResponse { desired })
                })
            })
            .await
    }

    /// Disconnects an agent. The attempts that it leaves running stay assigned to it.
    pub async fn disconnect(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        disconnect: DisconnectRequest,
    ) -> Result<(), ServiceError> {
        if disconnect.worker_id.as_ref().is_some_and(|id| *id != worker) {
            return Err(InvalidInput::OtherWorker.into());
        }
        let (disconnected, cause) = (worker.clone(), OfflineCause::Disconnected);
        let name_if_changed = self.context.change(caller, move |unit| {
            let worker = worker.clone();
            Box::pin(async move {
                let before = unit.worker(&worker).await?.worker;
                let after = before.clone().went_offline(unit.now, cause);
                unit.save_worker(&before, &after, AuditAction::WorkerOffline, &json!({"cause": cause})).await?;
                withdraw_offers(unit, &worker).await?;
                unit.request_planning();
                Ok((before != after).then_some(after.name))
            })
        });
        if let Some(name) = name_if_changed.await? {
            log_offline(&disconnected, &name, cause);
        }
        self.readings.forget(&disconnected);
        Ok(())
    }

    /// Clears the streams of servers that have stopped, and of this one at its start. Open streams are recorded again.
    pub async fn drop_dead_streams(self: &Arc<Self>, live_servers: Vec<String>) -> Result<(), ServiceError> {
        let is_stale = |worker: &Worker, live_servers: &[String]| {
            let server = worker.stream_id().and_then(|stream| stream.split_once('/')).map(|(server, _)| server);
            server.is_some_and(|server| !live_servers.iter().any(|live| live == server))
        };
        let has_stale =
            |fleet_state: &FleetState| fleet_state.workers().any(|row| is_stale(row.worker(), &live_servers));
        if !self.context.read_recent().await?.with_state(has_stale).await? {
            return Ok(());
        }
        self.context
            .change(Caller::system(), move |unit| {
                let live_servers = live_servers.clone();
                Box::pin(async move {
                    for before in unit.tx.workers().await?.into_iter().map(|stored| stored.worker) {
                        if let Some(stream) = before.stream_id().filter(|_| is_stale(&before, &live_servers)) {
                            let after = before.clone().stream_closed(unit.now, stream);
                            let detail = json!({"cause": StreamEndCause::ServerStopped});
                            unit.save_worker(&before, &after, AuditAction::WorkerConnecting, &detail).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Writes the last-contact times of workers.
    pub async fn flush_presence(&self) -> Result<(), ServiceError> {
        let last_seen = Arc::new(self.context.presence.take_unwritten());
        if last_seen.is_empty() {
            return Ok(());
        }
        let work: TransactionWork = Box::new(move |tx| {
            let last_seen = Arc::clone(&last_seen);
            Box::pin(async move { tx.flush_last_seen(&last_seen).await })
        });
        Ok(self.context.store.write(work).await?)
    }
}

/// A validated registration.
struct RegistrationInput {
    auth: WorkerAuth,
    capability: Capability,
    kind: WorkerKind,
    claims: Vec<AttemptClaim>,
    /// The new session; older agents have none.
    session: Option<String>,
    access: Arc<AccessService>,
}

async fn register_in(unit: &mut UnitOfWork<'_>, input: &RegistrationInput) -> Result<RegisterResponse, ServiceError> {
    let RegistrationInput { auth, capability, kind, claims, session, access } = input;
    let worker = &auth.worker;
    let stored = unit.worker(worker).await?;
    // The token may have been rotated since the request was authenticated.
    auth.check(&stored, unit.now).map_err(|rejection| ServiceError::WorkerTokenRejected(rejection, worker.clone()))?;
    let is_alive = liveness_verdict(unit.context, &stored, unit.now).is_none();
    let before = stored.worker.clone();
    before.check_registration(capability, is_alive, unit.tx.leased_jobs(Some(worker)).await?.len())?;
    let displaces = capability.is_older_agent() && before.stream_id().is_some();
    if displaces && would_orphan_jobs(&unit.tx.leased_jobs(Some(worker)).await?, claims) {
        // It may be the same agent after a restart: then the old stream ends soon, and the agent retries in 10 s. It
        // may also be a second agent with the same token, also on the same host, which would stop a healthy training.
        return Err(WorkerTransitionError::TokenInUse.into());
    }
    let after = before.clone().registered(unit.now, capability.clone(), *kind);
    let after = Worker { lease_duration: Some(unit.context.policy.heartbeat_timeout), ..after };
    let gpus: Vec<&str> = capability.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let old_token_ended = activate_token(unit, auth, &stored, session.as_deref()).await?;
    let mut detail = json!({"gpus": gpus, "hostname": capability.hostname, "agent_version": capability.agent_version});
    if old_token_ended {
        detail["old_token_ended"] = json!(true);
    }
    if capability.unavailable_gpu_count() > 0 {
        detail["unavailable"] = json!(unavailable_details(&capability.gpus));
    }
    if let Some(reason) = &capability.unhealthy_reason {
        detail["unhealthy_reason"] = json!(reason);
    }
    access.check_change_rate(&before, &after)?;
    unit.save_worker(&before, &after, AuditAction::WorkerRegistered, &detail).await?;
    let stop = accept_claims(unit, &after, claims).await?;
    let is_claimed = |job: &Job| claims.iter().any(|claim| claim.is_newest_of(job));
    for job in unit.tx.leased_jobs(Some(worker)).await?.into_iter().filter(|job| !is_claimed(job)) {
        let after = resolve_unclaimed(unit.now, &after, job.clone(), unit.context.policy.worker_lease(Some(&before)));
        unit.save_job(&job, &after).await?;
    }
    if before.capability().is_some_and(|former| former.is_other_installation(capability)) {
        abandon_attempts(unit, worker).await?;
    }
    unit.request_planning();
    let stored = unit.worker(worker).await?;
    let mut desired = load_desired(unit.context, unit.tx, &stored).await?;
    desired.stop.extend(stop);
    let older = capability.is_older_agent();
    let resumed = claims.iter().find(|claim| desired.run.iter().any(|run| run.job_id == claim.job));
    Ok(RegisterResponse {
        worker_id: worker.clone(),
        name: after.name,
        heartbeat_interval_seconds: unit.context.policy.heartbeat_interval_seconds(),
        heartbeat_timeout_seconds: (unit.context.policy.heartbeat_timeout.0 / 1_000).unsigned_abs(),
        protocol: PROTOCOL_VERSION,
        server_time: unit.now,
        session: None,
        resume_job: resumed.filter(|_| older).map(|claim| ResumeJob { job_id: claim.job.clone() }),
        abandon_job: older
            && !claims.is_empty()
            && resumed.is_none()
            && desired.stop.iter().any(|s| s.job_id == claims[0].job),
        desired,
    })
}

fn check_heartbeat(worker: &WorkerId, heartbeat: &HeartbeatRequest) -> Result<(), ServiceError> {
    if heartbeat.worker_id.as_ref().is_some_and(|id| id != worker) {
        return Err(InvalidInput::OtherWorker.into());
    }
    match heartbeat.status.as_deref() {
        None | Some("idle" | "busy" | "connecting" | "draining") => {}
        Some(other) => return Err(InvalidInput::Status(other.chars().take(40).collect()).into()),
    }
    check_telemetry(&heartbeat.telemetry)?;
    if heartbeat.attempts.len() > MAX_GPUS as usize {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Attempts, limit: MAX_GPUS.into() }.into());
    }
    Ok(())
}
