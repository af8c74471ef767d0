//! The connection to the orchestrator: registers, sends heartbeats, listens, and reconnects after every loss.
//!
//! What it receives goes to the agent as [`AgentInput`]s. Heartbeats and the stream are separate, so that neither waits
//! for the other, and neither ever waits for a job.

mod close;
mod event_channel;
mod event_size;
mod heartbeat;
mod stream;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::protocol::agents::dispatch::WorkerEvent;
use app::protocol::agents::{PROTOCOL_VERSION, RegisterRequest, RunningAttempt};
use app::remote::ServerTrust;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::worker::api::OrchestratorError;
use crate::worker::clock;
use crate::worker::context::AgentContext;
use crate::worker::files::AttemptKey;
use crate::worker::state::AgentInput;

/// Why the token was rejected, and what to do: in the orchestrator's words, unless it sent only a code.
fn token_rejected_message(detail: &str) -> String {
    if detail.starts_with("Invalid token") {
        detail.to_owned()
    } else if detail.contains(' ') {
        format!("Invalid token: {detail}")
    } else {
        format!(
            "Invalid token ({detail}): it may have been rotated, or its worker deleted. Get a new token from the \
             orchestrator, and start again."
        )
    }
}

/// Whether the orchestrator can be reached.
#[derive(Debug, Clone, Default)]
pub struct OrchestratorReach {
    /// Whether the agent has ever registered.
    pub registered: bool,
    /// Since when it cannot be reached.
    pub unreachable_since: Option<(Instant, Timestamp)>,
    /// Time after which the orchestrator considers this worker offline.
    pub offline_timeout: Duration,
}

/// The state of the connection.
#[derive(Debug, Clone)]
pub struct AgentSession {
    context: Arc<AgentContext>,
    input_sender: mpsc::Sender<AgentInput>,
    attempts: watch::Receiver<Vec<RunningAttempt>>,
    registration: Arc<watch::Sender<Option<Registration>>>,
    last_contact: Arc<watch::Sender<Instant>>,
    reach: Arc<watch::Sender<OrchestratorReach>>,
    /// A heartbeat was rejected since the last registration: the agent must register again.
    must_register: Arc<watch::Sender<bool>>,
    /// Notified when a heartbeat was answered, whatever the response. Earlier heartbeats wake no waiter.
    heartbeat_answered: Arc<Notify>,
    /// See [`close`].
    decline_requests: watch::Receiver<u32>,
}

/// The response to the registration.
#[derive(Debug, Clone)]
struct Registration {
    worker_id: WorkerId,
    interval: Duration,
}

/// The token was rejected: nothing else is possible on this connection.
struct TokenRejected(String);

impl AgentSession {
    /// Creates a session that is not connected yet.
    pub fn new(
        context: Arc<AgentContext>,
        inbox: mpsc::Sender<AgentInput>,
        attempts: watch::Receiver<Vec<RunningAttempt>>,
        decline_requests: watch::Receiver<u32>,
    ) -> Self {
        Self {
            context,
            input_sender: inbox,
            attempts,
            registration: Arc::new(watch::Sender::new(None)),
            last_contact: Arc::new(watch::Sender::new(Instant::now())),
            reach: Arc::new(watch::Sender::new(OrchestratorReach {
                unreachable_since: Some((Instant::now(), clock::now())),
                ..OrchestratorReach::default()
            })),
            must_register: Arc::default(),
            heartbeat_answered: Arc::default(),
            decline_requests,
        }
    }

    /// Stays connected until the token is rejected or this is dropped.
    pub async fn run(self) {
        let TokenRejected(sentence) = tokio::select! {
            rejected = event_channel::run(&self) => rejected,
            rejected = heartbeat::run(&self) => rejected,
            never = self.monitor_contact() => match never {},
        };
        self.context.token_rejected.store(true, Ordering::Relaxed);
        let sentence = token_rejected_message(&sentence);
        if !self.attempts.borrow().is_empty() {
            tracing::error!("{sentence} Running jobs continue, and the agent exits after them.");
        }
        self.send_input(AgentInput::TokenRejected(sentence)).await;
    }

    /// This worker's ID at the orchestrator, once it is known.
    pub fn worker_id(&self) -> Option<WorkerId> {
        self.registration.borrow().as_ref().map(|registration| registration.worker_id.clone())
    }

    async fn send_input(&self, input: AgentInput) {
        // The agent's loop has ended, so the process exits.
        let _ = self.input_sender.send(input).await;
    }

    /// Whether the orchestrator can be reached, with changes.
    pub fn reach(&self) -> watch::Receiver<OrchestratorReach> {
        self.reach.subscribe()
    }

    /// Waits until a heartbeat is rejected.
    async fn wait_until_unknown(&self) {
        // Cannot fail: the session owns the sender.
        let _ = self.must_register.subscribe().wait_for(|unknown| *unknown).await;
    }

    fn record_contact(&self) {
        self.last_contact.send_replace(Instant::now());
        self.reach.send_if_modified(|reach| reach.registered && reach.unreachable_since.take().is_some());
    }

    fn record_failure(&self) {
        self.reach.send_if_modified(|reach| {
            let is_new = reach.unreachable_since.is_none();
            reach.unreachable_since.get_or_insert_with(|| (Instant::now(), clock::now()));
            is_new
        });
    }

    /// Logs when there was no contact for too long.
    async fn monitor_contact(&self) -> std::convert::Infallible {
        let limit = self.context.config.give_up_after;
        loop {
            let deadline = *self.last_contact.borrow() + limit;
            tokio::time::sleep_until(deadline).await;
            if *self.last_contact.borrow() + limit <= Instant::now() {
                let sentence = format!(
                    "the orchestrator at {} was unreachable for {} s; an ephemeral worker does not wait longer",
                    self.context.config.url,
                    limit.as_secs()
                );
                self.send_input(AgentInput::Unreachable(sentence)).await;
                self.record_contact();
            }
        }
    }

    /// Registers once.
    async fn register(&self) -> Result<(), OrchestratorError> {
        let config = &self.context.config;
        let hardware = &self.context.hardware;
        let first_gpu = hardware.gpus.first();
        let attempts = self.attempts.borrow().clone();
        let body = RegisterRequest {
            name: Some(config.name.clone()),
            gpu_info: Some(hardware.summary()),
            persistent: Some(config.persistent),
            current_job_id: attempts.first().map(|running| running.job_id.clone()),
            gpu_count: u32::try_from(hardware.gpus.len()).ok(),
            gpu_name: first_gpu.map(|gpu| gpu.name.clone()),
            gpu_vram_gb: first_gpu.and_then(|gpu| gpu.vram_gb),
            accelerator_type: Some(hardware.accelerator.clone()),
            gpus: self.context.gpus.with_availability(&hardware.gpus),
            labels: config.labels.clone(),
            host: Some(config.hostname.clone()),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            protocol: Some(PROTOCOL_VERSION),
            boot_id: Some(self.context.boot_id.clone()),
            install_id: Some(self.context.install_id.clone()),
            tls_verify: (config.url.scheme() == "https").then_some(config.trust != ServerTrust::AcceptAny),
            max_jobs: Some(config.max_jobs.resolve(hardware.gpus.len())),
            unhealthy_reason: self.context.unhealthy_reason(),
            sandbox: Some(self.context.sandbox_report()),
            paths: Some(config.host_directories.keys().cloned().collect()),
            attempts,
        };
        let sent_boot_ms = clock::boot_ms();
        let response = self.context.api.register(&body).await?;
        self.context.api.lease.set_timeout(response.heartbeat_timeout_seconds);
        self.context.api.lease.renew(sent_boot_ms);
        self.record_contact();
        self.must_register.send_replace(false);
        if self.worker_id().as_ref() != Some(&response.worker_id) {
            tracing::info!("registered at {} as {} ({})", config.url, response.name, response.worker_id);
            if config.has_explicit_name && config.name != response.name {
                tracing::warn!(
                    "--name {} has no effect: the orchestrator knows this worker as {}",
                    config.name,
                    response.name
                );
            }
        }
        let interval = Duration::from_secs(response.heartbeat_interval_seconds.clamp(1, 3_600));
        self.registration.send_replace(Some(Registration { worker_id: response.worker_id, interval }));
        let timeout = Duration::from_secs(response.heartbeat_timeout_seconds);
        self.reach.send_replace(OrchestratorReach {
            registered: true,
            unreachable_since: None,
            offline_timeout: timeout,
        });
        self.context.reconnect_signal.notify();
        self.send_input(AgentInput::Desired(Box::new(response.desired))).await;
        Ok(())
    }

    /// Passes an event on to the agent.
    async fn handle_event(&self, event: WorkerEvent) {
        let input = match event {
            WorkerEvent::JobSubmit(offer) => AgentInput::Offer(offer),
            WorkerEvent::JobCancel { job_id, attempt, reason } => {
                AgentInput::Stop(AttemptKey { job_id, attempt }, reason)
            }
            WorkerEvent::Shutdown { reason } => {
                tracing::info!("the orchestrator stops this worker: {reason}");
                AgentInput::Shutdown
            }
            WorkerEvent::Drain { drain } => AgentInput::Drain(drain),
            WorkerEvent::Ping | WorkerEvent::Unknown => return,
        };
        self.send_input(input).await;
    }
}
