//! The connection to the orchestrator: registers, beats, listens, and comes back after every loss.
//!
//! What it hears goes to the agent as [`Input`]s. Heartbeats and the stream are apart, so that neither waits for the other,
//! and neither ever waits for a job.

mod close;
mod event_size;
mod heartbeat;
mod link;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use app::domain::ids::WorkerId;
use app::domain::sandbox::Sandbox;
use app::domain::time::Timestamp;
use app::protocol::dispatch::WorkerEvent;
use app::protocol::worker::{PROTOCOL, Register, RunningAttempt};
use app::remote::Trust;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use crate::api::{Api, ApiError, Online};
use crate::clock;
use crate::config::Config;
use crate::files::Key;
use crate::gpu::{Gpus, Hardware};
use crate::limits;
use crate::room::Room;
use crate::sandbox::host::Host;
use crate::state::Input;

/// What the agent's tasks share.
#[derive(Debug)]
pub struct Context {
    /// The settings.
    pub config: Config,
    /// The orchestrator.
    pub api: Api,
    /// Whether it is there.
    pub online: Online,
    /// The host's GPUs.
    pub hardware: Hardware,
    /// How they are now.
    pub gpus: Gpus,
    /// Whether its disk has room for a job.
    pub room: Room,
    /// How it confines trainers.
    pub sandbox: Host,
    /// What it lets each job take.
    pub limits: limits::Host,
    /// Random per start of the agent.
    pub boot_id: String,
    /// Random per work directory.
    pub install_id: String,
    /// Whether the worker's token was refused, so that only job tokens open anything.
    pub refused: AtomicBool,
    /// What jobs and operators have in common.
    pub shared: crate::service::Shared,
}

/// Why the token was refused, and what to do: in the orchestrator's words, unless it said no more than a code.
fn token_refused(detail: &str) -> String {
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

impl Context {
    /// Why this host takes no new job, if it takes none.
    pub fn unfit(&self) -> Option<String> {
        self.sandbox.unfit().or_else(|| self.room.unfit())
    }

    /// How jobs are confined and limited here.
    fn sandbox(&self) -> Sandbox {
        Sandbox { limits: Some(self.limits.reported()), ..self.sandbox.reported() }
    }
}

/// Whether the orchestrator is in reach.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// It was, once.
    pub registered: bool,
    /// Since when it is not.
    pub away: Option<(Instant, Timestamp)>,
    /// After so long it takes this worker for offline.
    pub timeout: Duration,
}

/// Where the connection gets and leaves what it knows.
#[derive(Debug, Clone)]
pub struct Session {
    context: Arc<Context>,
    inbox: mpsc::Sender<Input>,
    attempts: watch::Receiver<Vec<RunningAttempt>>,
    registered: Arc<watch::Sender<Option<Registration>>>,
    last_contact: Arc<watch::Sender<Instant>>,
    reach: Arc<watch::Sender<Reach>>,
    /// A heartbeat was refused since the last registration: the orchestrator has to be told again who this is.
    unknown: Arc<watch::Sender<bool>>,
    /// Wakes who waits when a heartbeat was answered, whatever the answer; nobody is woken by an earlier one.
    answered: Arc<Notify>,
    /// See [`close`].
    turned_away: watch::Receiver<u32>,
}

/// What the orchestrator said at registration.
#[derive(Debug, Clone)]
struct Registration {
    worker_id: WorkerId,
    interval: Duration,
}

/// The token was refused: nothing else can be done on this connection.
struct Refused(String);

impl Session {
    /// Not connected yet.
    pub fn new(
        context: Arc<Context>,
        inbox: mpsc::Sender<Input>,
        attempts: watch::Receiver<Vec<RunningAttempt>>,
        turned_away: watch::Receiver<u32>,
    ) -> Self {
        Self {
            context,
            inbox,
            attempts,
            registered: Arc::new(watch::Sender::new(None)),
            last_contact: Arc::new(watch::Sender::new(Instant::now())),
            reach: Arc::new(watch::Sender::new(Reach {
                away: Some((Instant::now(), clock::now())),
                ..Reach::default()
            })),
            unknown: Arc::default(),
            answered: Arc::default(),
            turned_away,
        }
    }

    /// Stays connected until the token is refused or this is dropped.
    pub async fn run(self) {
        let Refused(sentence) = tokio::select! {
            refused = link::run(&self) => refused,
            refused = heartbeat::run(&self) => refused,
            never = self.watch_contact() => match never {},
        };
        self.context.refused.store(true, Ordering::Relaxed);
        let sentence = token_refused(&sentence);
        if !self.attempts.borrow().is_empty() {
            tracing::error!("{sentence} What runs here goes on, and its agent ends after it.");
        }
        self.tell(Input::Refused(sentence)).await;
    }

    /// The id that the orchestrator knows this worker by, once it has said it.
    pub fn worker_id(&self) -> Option<WorkerId> {
        self.registered.borrow().as_ref().map(|registration| registration.worker_id.clone())
    }

    async fn tell(&self, input: Input) {
        // The agent has ended its loop: then the process ends.
        let _ = self.inbox.send(input).await;
    }

    /// Whether the orchestrator is in reach, from now on.
    pub fn reach(&self) -> watch::Receiver<Reach> {
        self.reach.subscribe()
    }

    /// Waits until a heartbeat is refused.
    async fn until_unknown(&self) {
        // The sender is in the session itself.
        let _ = self.unknown.subscribe().wait_for(|unknown| *unknown).await;
    }

    fn contact(&self) {
        self.last_contact.send_replace(Instant::now());
        self.reach.send_if_modified(|reach| reach.registered && reach.away.take().is_some());
    }

    /// A try has failed.
    fn lost(&self) {
        self.reach.send_if_modified(|reach| {
            let fresh = reach.away.is_none();
            reach.away.get_or_insert_with(|| (Instant::now(), clock::now()));
            fresh
        });
    }

    /// Says when there was no contact for too long.
    async fn watch_contact(&self) -> std::convert::Infallible {
        let limit = self.context.config.give_up_after;
        loop {
            let deadline = *self.last_contact.borrow() + limit;
            tokio::time::sleep_until(deadline).await;
            if *self.last_contact.borrow() + limit <= Instant::now() {
                let sentence = format!(
                    "the orchestrator at {} was out of reach for {} s; an ephemeral worker does not wait longer",
                    self.context.config.url,
                    limit.as_secs()
                );
                self.tell(Input::Unreachable(sentence)).await;
                self.contact();
            }
        }
    }

    /// Registers once.
    async fn register(&self) -> Result<(), ApiError> {
        let config = &self.context.config;
        let hardware = &self.context.hardware;
        let first = hardware.gpus.first();
        let attempts = self.attempts.borrow().clone();
        let body = Register {
            name: Some(config.name.clone()),
            gpu_info: Some(hardware.info()),
            persistent: Some(config.persistent),
            current_job_id: attempts.first().map(|running| running.job_id.clone()),
            gpu_count: u32::try_from(hardware.gpus.len()).ok(),
            gpu_name: first.map(|gpu| gpu.name.clone()),
            gpu_vram_gb: first.and_then(|gpu| gpu.vram_gb),
            accelerator_type: Some(hardware.accelerator.clone()),
            gpus: self.context.gpus.marked(&hardware.gpus),
            labels: config.labels.clone(),
            host: Some(config.host.clone()),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            protocol: Some(PROTOCOL),
            boot_id: Some(self.context.boot_id.clone()),
            install_id: Some(self.context.install_id.clone()),
            tls_verify: (config.url.scheme() == "https").then_some(config.trust != Trust::Anything),
            max_jobs: Some(config.max_jobs.on(hardware.gpus.len())),
            unfit: self.context.unfit(),
            sandbox: Some(self.context.sandbox()),
            paths: Some(config.paths.keys().cloned().collect()),
            attempts,
        };
        let sent = crate::clock::boot_ms();
        let answer = self.context.api.register(&body).await?;
        self.context.api.lease.told(answer.heartbeat_timeout_seconds);
        self.context.api.lease.renew(sent);
        self.contact();
        self.unknown.send_replace(false);
        if self.worker_id().as_ref() != Some(&answer.worker_id) {
            tracing::info!("registered at {} as {} ({})", config.url, answer.name, answer.worker_id);
            if config.named && config.name != answer.name {
                tracing::warn!(
                    "--name {} changes nothing: the orchestrator knows this worker as {}",
                    config.name,
                    answer.name
                );
            }
        }
        let interval = Duration::from_secs(answer.heartbeat_interval_seconds.clamp(1, 3_600));
        self.registered.send_replace(Some(Registration { worker_id: answer.worker_id, interval }));
        let timeout = Duration::from_secs(answer.heartbeat_timeout_seconds);
        self.reach.send_replace(Reach { registered: true, away: None, timeout });
        self.context.online.announce();
        self.tell(Input::Desired(Box::new(answer.desired))).await;
        Ok(())
    }

    /// Passes an event on.
    async fn heard(&self, event: WorkerEvent) {
        let input = match event {
            WorkerEvent::JobSubmit(offer) => Input::Offer(offer),
            WorkerEvent::JobCancel { job_id, attempt, reason } => Input::Stop(Key { job_id, attempt }, reason),
            WorkerEvent::Shutdown { reason } => {
                tracing::info!("the orchestrator ends this worker: {reason}");
                Input::Shutdown
            }
            WorkerEvent::Drain { drain } => Input::Drain(drain),
            WorkerEvent::Ping | WorkerEvent::Unknown => return,
        };
        self.tell(input).await;
    }
}
