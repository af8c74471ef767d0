//! One attempt from its offer to its last report, as the agent sees it.
//!
//! Its tasks (log, progress, samples, orders, the wait for the end) run side by side and share nothing but the acknowledged
//! offsets in `state.json`, so none can hold up another. All of it can be dropped at any moment and taken up again by the
//! next agent.

mod adopt;
mod checkpoints;
mod earlier;
mod finish;
mod follow;
mod given;
mod gpus;
mod kept;
mod lastwords;
mod launch;
mod lease;
mod logs;
mod pieces;
mod points;
mod prepare;
mod room;
mod said;
mod sandbox;
mod uploads;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use app::domain::trace::Trace;
use app::protocol::dispatch::JobSubmit;
use tokio::sync::watch;

pub use adopt::Found;

use self::given::Given;
use self::kept::Kept;
use crate::api::{ApiError, JobApi};
use crate::clock;
use crate::files::{AttemptDir, JobDisk, Key, Secrets, Spec, State, StopCause, StopOrder, VERSION, remove_tree};
use crate::gpu::Held;
use crate::sandbox::users;
use crate::secret::Secret;
use crate::session::Context;

/// What belongs to somebody else by now gets no longer than this to end, in seconds.
const SUPERSEDED_GRACE: u64 = 5;

tokio::task_local! {
    /// The job that is being seen to, and its trace: for log lines.
    static CURRENT: (String, Option<Trace>);
}

/// What a log line says of the job that it belongs to.
pub fn around() -> Vec<(&'static str, String)> {
    let told = |(job, trace): &(String, Option<Trace>)| {
        let trace = trace.as_ref().map(|trace| ("trace_id", trace.id().to_owned()));
        [("job_id", job.clone())].into_iter().chain(trace).collect()
    };
    CURRENT.try_with(told).unwrap_or_default()
}

/// One attempt.
#[derive(Debug)]
pub struct Attempt {
    context: Arc<Context>,
    dir: AttemptDir,
    spec: Spec,
    secrets: Secrets,
    /// Secrets for the trainer, once they were fetched.
    given: OnceLock<Arc<Given>>,
    /// Where the job stands in a trace, if the orchestrator has said something that makes sense.
    trace: Option<Trace>,
    api: JobApi,
    kept: Kept,
    stop: watch::Sender<Option<StopCause>>,
    /// Its GPUs: whoever computes on them is not foreign.
    _held: Held,
}

impl Attempt {
    /// For an offer: its directory exists from here on, so that a restarted agent knows of it.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn begin(context: &Arc<Context>, offer: &JobSubmit) -> io::Result<Arc<Self>> {
        let key = Key { job_id: offer.job_id.clone(), attempt: offer.attempt };
        let dir = AttemptDir::new(&context.config.work_dir, &key);
        std::fs::create_dir_all(dir.path())?;
        let secrets = Secrets {
            job_token: Secret::new(&offer.upload_token),
            hf_token: offer.hf_token.as_deref().map(Secret::new),
            webhook: Secret::new(&clock::secret()?),
        };
        let offer = JobSubmit {
            upload_token: String::new(),
            hf_token: None,
            config: serde_json::Map::new(),
            dataloader: None,
            ..offer.clone()
        };
        let host_boot = crate::process::host_boot();
        let trainer = context.config.trainer.clone();
        let (limits, place) = (context.config.limits(), context.limits.place().cloned());
        let mut spec =
            Spec { version: VERSION, key, offer, trainer, host_boot, resume: false, limits, place, disk: None };
        let home = users::home(&context.config.work_dir, &users::person(&spec));
        spec.disk = context.config.job_disk_bytes().map(|bytes| JobDisk { bytes, home });
        let state = State { version: VERSION, ..State::default() };
        let written = dir
            .write("secrets.json", &secrets)
            .and_then(|()| dir.write("state.json", &state))
            .and_then(|()| dir.write("spec.json", &spec));
        // Nobody comes back to half of one, and secrets are in it.
        written.inspect_err(|_| drop(remove_tree(dir.path())))?;
        Ok(Arc::new(Self::new(context, dir, spec, secrets, state)))
    }

    fn new(context: &Arc<Context>, dir: AttemptDir, spec: Spec, secrets: Secrets, state: State) -> Self {
        let trace = spec.offer.traceparent.as_deref().and_then(Trace::parse);
        let held = context.gpus.hold(&spec.offer.gpus);
        Self {
            api: JobApi::new(context.api.clone(), spec.key.clone(), secrets.job_token.clone(), trace.clone()),
            trace,
            context: Arc::clone(context),
            kept: Kept::new(&dir, state),
            dir,
            spec,
            secrets,
            given: OnceLock::new(),
            stop: watch::Sender::new(None),
            _held: held,
        }
    }

    /// Which attempt this is.
    pub fn key(&self) -> &Key {
        &self.spec.key
    }

    /// The GPUs that it was granted.
    pub fn gpus(&self) -> &[String] {
        &self.spec.offer.gpus
    }

    /// Orders it to stop; a weaker reason than an earlier one changes nothing.
    pub fn stop(&self, cause: StopCause) {
        self.stop.send_if_modified(|order| {
            let stronger = order.is_none_or(|earlier| earlier < cause);
            if stronger {
                *order = Some(cause);
            }
            stronger
        });
    }

    /// Runs it to its end. Whether its end was reported, and not dropped as somebody else's.
    pub async fn run(&self) -> bool {
        CURRENT.scope((self.key().job_id.to_string(), self.trace.clone()), self.run_in()).await
    }

    async fn run_in(&self) -> bool {
        let known = self.state().terminal.clone();
        let report = match known {
            Some(report) => Some(report),
            None => self.live().await,
        };
        let Some(report) = report else {
            tracing::info!("{}: no longer this worker's", self.key());
            self.close().await;
            return false;
        };
        self.deliver(report).await
    }

    fn order(&self, cause: StopCause) -> StopOrder {
        let grace = self.context.shared.grace(self.context.config.stop_grace).as_secs();
        let grace_seconds = if cause == StopCause::Superseded { grace.min(SUPERSEDED_GRACE) } else { grace };
        StopOrder { cause, grace_seconds }
    }

    fn is_superseded(&self) -> bool {
        *self.stop.borrow() == Some(StopCause::Superseded)
    }

    /// Waits for an order that is at least as strong.
    async fn ordered(&self, weakest: StopCause) -> StopCause {
        let mut orders = self.stop.subscribe();
        // The sender is `self`; without it nobody waits.
        match orders.wait_for(|order| order.is_some_and(|cause| cause >= weakest)).await {
            Ok(order) => order.unwrap_or(weakest),
            Err(_) => std::future::pending().await,
        }
    }

    /// Does it, unless and until the attempt becomes somebody else's.
    async fn while_ours<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.ordered(StopCause::Superseded) => None,
            done = task => Some(done),
        }
    }

    /// Draws the consequence of an error that trying again does not change.
    fn judge(&self, what: &str, error: &ApiError) {
        match error {
            ApiError::Conflict { .. } | ApiError::Gone(_) => {
                tracing::warn!("{}: {what}: {error}: stopping, as it is no longer this worker's", self.key());
                self.stop(StopCause::Superseded);
            }
            _ => tracing::warn!("{}: {what}: {error}", self.key()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.kept.state()
    }

    /// Changes the state, and writes it down. `must` waits for the disk.
    async fn update(&self, must: bool, change: impl FnOnce(&mut State)) {
        self.kept.update(must, change).await;
    }

    /// Nothing is left to tell.
    async fn close(&self) {
        let (tmp, home) = (self.dir.tmp(), self.home());
        // A home that is noted as older than it is goes too early at worst.
        let _ = blocking(move || if home.exists() { users::mark_used(&home) } else { Ok(()) }).await;
        self.update(true, |state| state.delivered = true).await;
        forget_secrets(&self.dir);
        // What is left of it goes with the attempt.
        let _ = blocking(move || remove_tree(&tmp)).await;
    }
}

/// Nobody needs them any more.
fn forget_secrets(dir: &AttemptDir) {
    for file in ["secrets.json", given::FILE] {
        // It is gone if an earlier agent came this far.
        let _ = std::fs::remove_file(dir.join(file));
    }
}

/// How long a file is; one that is not there has no bytes.
async fn length(path: PathBuf) -> u64 {
    blocking(move || Ok(std::fs::metadata(path)?.len())).await.unwrap_or_default()
}

/// Work with files, away from the loop: a disk may hang, and heartbeats and other jobs must not.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
