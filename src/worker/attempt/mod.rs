//! One attempt from its offer to its final report, as the agent sees it.
//!
//! Its tasks (log, progress, samples, stop requests, the wait for the exit) run concurrently and share only the
//! acknowledged offsets in `state.json`, so none can block another. They can be dropped at any time, and the next
//! agent resumes them.

mod adopt;
mod checkpoint_events;
mod chunked_upload;
mod disk_space;
mod finish;
mod gpus;
mod host_fault;
mod job_secrets;
mod launch;
mod lease;
mod log_tail;
mod logs;
mod metrics;
mod monitor;
mod persisted_state;
mod prepare;
mod previous_checkpoint;
mod resume_checkpoint;
mod sandbox;
mod uploads;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use app::domain::time::Timestamp;
use app::domain::trace_context::TraceContext;
use app::protocol::agents::dispatch::{BundleRef, JobOffer};
use app::threads::run_io;
use tokio::sync::watch;

pub use adopt::AdoptOutcome;

use self::job_secrets::AttemptJobSecrets;
use self::persisted_state::PersistedState;
use crate::worker::api::{JobApi, OrchestratorError};
use crate::worker::clock;
use crate::worker::context::AgentContext;
use crate::worker::files::{
    AttemptDir, AttemptKey, AttemptSecrets, AttemptSpec, AttemptState, JobDiskLimit, StopCause, StopOrder, VERSION,
    remove_tree,
};
use crate::worker::gpu::GpuReservation;
use crate::worker::logging::CURRENT_JOB;
use crate::worker::sandbox::users;
use crate::worker::secret::Secret;
use crate::worker::supervisor_pool::SupervisorProcess;

/// Grace period of a superseded attempt, in seconds.
const SUPERSEDED_GRACE: u64 = 5;

#[derive(Debug)]
pub struct AttemptRunner {
    context: Arc<AgentContext>,
    dir: AttemptDir,
    spec: AttemptSpec,
    secrets: AttemptSecrets,
    /// The trainer's secrets, once fetched.
    job_secrets: OnceLock<Arc<AttemptJobSecrets>>,
    /// The job's trace context, if the orchestrator sent a valid one.
    trace: Option<TraceContext>,
    api: JobApi,
    persisted: PersistedState,
    stop: watch::Sender<Option<StopCause>>,
    /// The bundle, if the offer contained it, until it is unpacked.
    offered_body: Mutex<Option<String>>,
    /// When this agent started the trainer, if it did.
    started_at: OnceLock<Timestamp>,
    /// The supervisor, if this agent has assigned it.
    supervisor: Mutex<Option<SupervisorProcess>>,
    /// While it exists, processes on these GPUs are not foreign.
    _gpu_reservation: GpuReservation,
}

impl AttemptRunner {
    /// For an offer. Its directory exists from here on, so that a restarted agent knows it.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn create(context: &Arc<AgentContext>, offer: &JobOffer) -> io::Result<Arc<Self>> {
        let key = AttemptKey { job_id: offer.job_id.clone(), attempt: offer.attempt };
        let dir = AttemptDir::new(&context.config.work_dir, &key);
        std::fs::create_dir_all(dir.path())?;
        let secrets = AttemptSecrets {
            job_token: Secret::new(&offer.upload_token),
            hf_token: offer.hf_token.as_deref().map(Secret::new),
            webhook: Secret::new(&clock::random_secret()?),
        };
        let offered_body = offer.bundle.body.clone();
        let offer = JobOffer {
            bundle: BundleRef { body: None, ..offer.bundle.clone() },
            upload_token: String::new(),
            hf_token: None,
            config: serde_json::Map::new(),
            dataloader: None,
            ..offer.clone()
        };
        let host_boot = crate::worker::process::host_boot_id().to_owned();
        let trainer = context.config.trainer.clone();
        let cwd = context.config.trainer_cwd.as_ref().map(|dir| dir.path.clone());
        let (limits, cgroup) = (context.config.attempt_limits(), context.limits.job_cgroup().cloned());
        let mut spec = AttemptSpec {
            version: VERSION,
            key,
            offer,
            trainer,
            cwd,
            host_boot,
            resume: false,
            limits,
            cgroup,
            disk: None,
        };
        let home = users::home_dir(&context.config.work_dir, &users::owner_name(&spec));
        spec.disk = context.config.job_disk_bytes().map(|bytes| JobDiskLimit { bytes, home });
        let state = AttemptState { version: VERSION, ..AttemptState::default() };
        let result = dir
            .write_json_unsynced("secrets.json", &secrets)
            .and_then(|()| dir.write_json_unsynced("spec.json", &spec));
        // An incomplete directory would never be adopted, and it contains secrets.
        result.inspect_err(|_| drop(remove_tree(dir.path())))?;
        Ok(Arc::new(Self { offered_body: Mutex::new(offered_body), ..Self::new(context, dir, spec, secrets, state) }))
    }

    fn new(
        context: &Arc<AgentContext>,
        dir: AttemptDir,
        spec: AttemptSpec,
        secrets: AttemptSecrets,
        state: AttemptState,
    ) -> Self {
        let trace = spec.offer.traceparent.as_deref().and_then(TraceContext::parse);
        let gpu_reservation = context.gpus.reserve(&spec.offer.gpus);
        Self {
            api: JobApi::new(context.api.clone(), spec.key.clone(), secrets.job_token.clone(), trace.clone()),
            trace,
            context: Arc::clone(context),
            persisted: PersistedState::new(&dir, state),
            dir,
            spec,
            secrets,
            job_secrets: OnceLock::new(),
            stop: watch::Sender::new(None),
            offered_body: Mutex::default(),
            started_at: OnceLock::new(),
            supervisor: Mutex::default(),
            _gpu_reservation: gpu_reservation,
        }
    }

    pub fn key(&self) -> &AttemptKey {
        &self.spec.key
    }

    pub fn gpus(&self) -> &[String] {
        &self.spec.offer.gpus
    }

    /// Requests a stop; a weaker cause than an earlier one changes nothing.
    pub fn stop(&self, cause: StopCause) {
        self.stop.send_if_modified(|order| cause.replace_weaker(order));
    }

    /// Runs the attempt to its end. Returns whether its end was reported, not dropped because it was superseded.
    pub async fn run(&self) -> bool {
        CURRENT_JOB.scope((self.key().job_id.to_string(), self.trace.clone()), self.run_to_report()).await
    }

    async fn run_to_report(&self) -> bool {
        let stored_report = self.state().terminal.clone();
        let report = match stored_report {
            Some(report) => Some(report),
            None => self.run_to_end().await,
        };
        let Some(report) = report else {
            tracing::info!("{}: no longer assigned to this worker", self.key());
            self.mark_delivered().await;
            return false;
        };
        self.report_end(report).await
    }

    fn stop_order(&self, cause: StopCause) -> StopOrder {
        let grace = self.context.status.stop_grace(self.context.config.stop_grace).as_secs();
        let grace_seconds = if cause == StopCause::Superseded { grace.min(SUPERSEDED_GRACE) } else { grace };
        StopOrder { cause, grace_seconds }
    }

    fn is_superseded(&self) -> bool {
        *self.stop.borrow() == Some(StopCause::Superseded)
    }

    /// Waits for a stop request that is at least this strong.
    async fn wait_for_stop(&self, weakest: StopCause) -> StopCause {
        let mut orders = self.stop.subscribe();
        // Cannot fail: the sender is `self`.
        match orders.wait_for(|order| order.is_some_and(|cause| cause >= weakest)).await {
            Ok(order) => order.unwrap_or(weakest),
            Err(_) => std::future::pending().await,
        }
    }

    /// Runs the task until it completes or the attempt is superseded.
    async fn unless_superseded<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.wait_for_stop(StopCause::Superseded) => None,
            result = task => Some(result),
        }
    }

    /// Handles an error for which a retry does not help.
    fn handle_error(&self, operation: &str, error: &OrchestratorError) {
        match error {
            OrchestratorError::Conflict { .. } | OrchestratorError::NotFound(_) => {
                tracing::warn!(
                    "{}: {operation}: {error}: stopping, because it is no longer assigned to this worker",
                    self.key()
                );
                self.stop(StopCause::Superseded);
            }
            _ => tracing::warn!("{}: {operation}: {error}", self.key()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, AttemptState> {
        self.persisted.state()
    }

    /// Changes and saves the state. `wait_for_disk` waits until it is written.
    async fn update(&self, wait_for_disk: bool, change: impl FnOnce(&mut AttemptState)) {
        self.persisted.update(wait_for_disk, change).await;
    }

    async fn mark_delivered(&self) {
        let (tmp, home) = (self.dir.tmp_dir(), self.home_dir());
        // If this fails, the home directory looks older than it is and is at worst pruned too early.
        let _ = run_io(move || if home.exists() { users::touch_home(&home) } else { Ok(()) }).await;
        self.update(true, |state| state.delivered = true).await;
        remove_secrets(&self.dir);
        // What remains is removed with the attempt.
        let _ = run_io(move || remove_tree(&tmp)).await;
    }
}

fn remove_secrets(dir: &AttemptDir) {
    for file in ["secrets.json", job_secrets::FILE] {
        // It is missing if an earlier agent had already removed it.
        let _ = std::fs::remove_file(dir.join(file));
    }
}

/// The length of a file; 0 if it does not exist.
async fn file_size(path: PathBuf) -> u64 {
    run_io(move || Ok(std::fs::metadata(path)?.len())).await.unwrap_or_default()
}
