//! The agent's loop: inputs in, decisions from [`state::Agent`], actions out. It waits for nothing but the next input.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use app::protocol::worker::{Disconnect, RunningAttempt, StatusReport};
use nix::fcntl::{Flock, FlockArg};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::api::{Api, Online, until_answered};
use crate::attempt::{Attempt, Found};
use crate::config::Config;
use crate::exit::Fatal;
use crate::files::{self, Key};
use crate::room::Room;
use crate::session::{Context, Session};
use crate::state::{self, Action, Ending, Input, Policy};
use crate::{clock, gpu, limits, sandbox, service, spot};

/// Of what is expected here and is not.
const UNKNOWN: &str = "the worker has nothing of this attempt (its disk was lost, or it never arrived)";
/// How long saying good-bye may take.
const GOODBYE: Duration = Duration::from_secs(5);
/// After a signal, so much more than the trainers' grace.
const REPORTING: Duration = Duration::from_secs(30);

/// Runs the agent to its end.
///
/// # Errors
/// With the exit code and sentence.
pub fn main(config: Config) -> Result<u8, Fatal> {
    let _lock = claim(&config.work_dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fatal::error(format!("cannot start: {error}")))?;
    // Everything is on this one thread; only work with files has threads of its own.
    let ended = tokio::task::LocalSet::new().block_on(&runtime, run(config));
    // What still reads or writes a file does not hold up the end.
    runtime.shutdown_background();
    let ending = ended?;
    match ending.sentence {
        Some(sentence) => Err(Fatal { code: ending.code, sentence }),
        None => Ok(ending.code),
    }
}

/// Takes the work directory for this process alone.
fn claim(work_dir: &Path) -> Result<Flock<File>, Fatal> {
    let unusable = |error: std::io::Error| {
        Fatal::config(format!(
            "the work directory {} cannot be used: {error}. Name another one with --work-dir or SIMPLETUNER_WORK_DIR",
            work_dir.display()
        ))
    };
    DirBuilder::new().recursive(true).mode(0o700).create(work_dir.join("jobs")).map_err(unusable)?;
    let file = File::create(work_dir.join("agent.lock")).map_err(unusable)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        Fatal::config(format!(
            "another simpletuner-worker uses the work directory {}: stop it, or give this one its own with --work-dir",
            work_dir.display()
        ))
    })
}

/// Tells this work directory from any other: one token serves one at a time. Made at the first start.
fn install_id(work_dir: &Path) -> Result<String, Fatal> {
    let file = work_dir.join("install-id");
    let unusable = |error: std::io::Error| Fatal::config(format!("{} cannot be used: {error}", file.display()));
    match fs::read_to_string(&file) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unusable(error)),
    }
    let id = clock::secret().map_err(|error| Fatal::error(format!("no randomness: {error}")))?;
    fs::write(&file, &id).map_err(unusable)?;
    Ok(id)
}

async fn run(config: Config) -> Result<Ending, Fatal> {
    let listen = |kind| signal(kind).map_err(|error| Fatal::error(format!("cannot listen for signals: {error}")));
    let mut signals = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (hardware, gpus) = gpu::Gpus::start(&config).await;
    tracing::info!("{} GPU(s), accelerator {}", hardware.gpus.len(), hardware.accelerator);
    let room = Room::start(&config);
    let sandbox = examine_sandbox(&config).await?;
    let jobs = config.max_jobs.on(hardware.gpus.len());
    let limits = limits::Host::set_up(&config.work_dir, config.job_limits, jobs);
    let api = Api::new(&config)?;
    let boot_id = clock::secret().map_err(|error| Fatal::error(format!("no randomness: {error}")))?;
    let install_id = install_id(&config.work_dir)?;
    let (online, refused, shared) = (Online::default(), AtomicBool::new(false), service::Shared::default());
    let context = Arc::new(Context {
        config,
        api,
        online,
        hardware,
        gpus,
        room,
        sandbox,
        limits,
        boot_id,
        install_id,
        refused,
        shared,
    });

    let (inbox, inputs) = mpsc::channel(64);
    let mut agent = Agent::adopting(Arc::clone(&context), inbox.clone(), inputs)?;
    spot::start(&context, inbox.clone())?;
    gpu::tell_of_late_ones(&context, inbox.clone());
    let session = Session::new(Arc::clone(&context), inbox, agent.running.subscribe(), agent.turned_away.subscribe());
    let mut watch = service::Watch::new(context, session.reach());
    tokio::task::spawn_local(session.clone().run());
    let ending = agent.serve(&mut signals, &mut watch).await;
    watch.ending();
    agent.goodbye(&session).await;
    Ok(ending)
}

/// Finds out how this host confines trainers, which takes as long as its Python takes to start.
async fn examine_sandbox(config: &Config) -> Result<sandbox::host::Host, Fatal> {
    let config = config.clone();
    let examined = tokio::task::spawn_blocking(move || sandbox::host::Host::examine(&config, &config.work_dir)).await;
    let host = examined.map_err(|error| Fatal::error(format!("the sandbox cannot be tried: {error}")))?;
    let (least, most) = (host.least.as_str(), host.most.as_str());
    tracing::info!(least, most, users = host.has_users, "sandbox for jobs");
    if let Some(why) = &host.why_not_more {
        tracing::warn!(most, %why, "jobs cannot be confined fully on this host");
    }
    Ok(host)
}

/// The loop's own state.
struct Agent {
    context: Arc<Context>,
    decisions: state::Agent,
    attempts: HashMap<Key, Arc<Attempt>>,
    inbox: mpsc::Sender<Input>,
    inputs: mpsc::Receiver<Input>,
    running: watch::Sender<Vec<RunningAttempt>>,
    /// How often the orchestrator had to be told that nothing more is taken here.
    turned_away: watch::Sender<u32>,
}

impl Agent {
    /// With the attempts that an earlier agent left on disk.
    fn adopting(
        context: Arc<Context>,
        inbox: mpsc::Sender<Input>,
        inputs: mpsc::Receiver<Input>,
    ) -> Result<Self, Fatal> {
        let work_dir = &context.config.work_dir;
        let dirs = files::attempts(work_dir)
            .map_err(|error| Fatal::config(format!("the work directory cannot be listed: {error}")))?;
        let mut found = Vec::new();
        let mut live = Vec::new();
        for dir in dirs {
            match Attempt::adopt(&context, dir) {
                Found::Live(attempt) => {
                    tracing::info!("adopting {}", attempt.key());
                    let (key, gpus) = (attempt.key().clone(), attempt.gpus().to_vec());
                    found.push(state::Found { key, gpus, over: false });
                    live.push(attempt);
                }
                Found::Over(key) => found.push(state::Found { key, gpus: Vec::new(), over: true }),
                Found::Foreign => {}
            }
        }
        let policy = Policy {
            persistent: context.config.persistent,
            on_stop: context.config.on_stop,
            max_jobs: context.config.max_jobs.on(context.hardware.gpus.len()),
        };
        let decisions = state::Agent::new(policy, found);
        let running = watch::Sender::new(decisions.running());
        let turned_away = watch::Sender::new(0);
        let mut agent = Self { context, decisions, attempts: HashMap::new(), inbox, inputs, running, turned_away };
        for attempt in live {
            agent.follow(attempt);
        }
        agent.context.room.tidy();
        Ok(agent)
    }

    /// Until the process is to end.
    async fn serve(&mut self, signals: &mut (Signal, Signal), watch: &mut service::Watch) -> Ending {
        let mut deadline: Option<(Instant, Ending)> = None;
        loop {
            if let Some(ending) = watch.turn(&self.decisions.running()).and_then(|input| self.take(input)) {
                return ending;
            }
            let overdue = deadline.as_ref().map_or_else(|| Instant::now() + Duration::from_hours(1), |(at, _)| *at);
            let input = tokio::select! {
                biased;
                code = signalled(signals) => {
                    let ending = Ending { code, sentence: None };
                    if deadline.is_some() {
                        tracing::warn!("second signal: ending now");
                        return ending;
                    }
                    tracing::info!("asked to end ({:?})", self.context.config.on_stop);
                    watch.ending();
                    deadline = Some((self.last_moment(), ending));
                    Input::Signal(code)
                }
                Some(input) = self.inputs.recv() => input,
                () = watch.due() => continue,
                () = tokio::time::sleep_until(overdue) => match deadline.take() {
                    Some((_, ending)) => return ending,
                    None => continue,
                },
            };
            if let Some(ending) = self.take(input) {
                return ending;
            }
        }
    }

    /// When the process ends after a signal, whatever is left.
    fn last_moment(&self) -> Instant {
        let config = &self.context.config;
        let patience = match config.on_stop {
            crate::cli::OnStop::Finish => Duration::from_hours(365 * 24),
            _ => config.stop_grace + REPORTING,
        };
        Instant::now() + patience
    }

    fn take(&mut self, input: Input) -> Option<Ending> {
        if let Input::Ended(key, _) = &input {
            self.attempts.remove(key);
            self.context.room.tidy();
        }
        let actions = self.decisions.step(input);
        let now = self.decisions.running();
        self.running.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
        actions.into_iter().find_map(|action| self.act(action))
    }

    fn act(&mut self, action: Action) -> Option<Ending> {
        match action {
            Action::Start(offer) => {
                tracing::info!("offered {} attempt {} ({})", offer.job_id, offer.attempt, offer.config_name);
                match Attempt::begin(&self.context, &offer) {
                    Ok(attempt) => self.follow(attempt),
                    Err(error) => {
                        let key = Key { job_id: offer.job_id, attempt: offer.attempt };
                        // Unanswered it would be offered here again, without end.
                        let why = format!("the worker cannot make the job's directory: {error}");
                        self.report_gone(key.clone(), "requeue", why);
                        self.ended(key, false);
                    }
                }
            }
            Action::Stop(key, cause) => {
                tracing::info!("stopping {key} ({cause:?})");
                if let Some(attempt) = self.attempts.get(&key) {
                    attempt.stop(cause);
                }
            }
            Action::ReportGone(key, status) => self.report_gone(key, status, UNKNOWN.to_owned()),
            Action::TurnAway => self.turned_away.send_modify(|times| *times += 1),
            Action::Leave(ending) => return Some(ending),
        }
        None
    }

    fn follow(&mut self, attempt: Arc<Attempt>) {
        let key = attempt.key().clone();
        self.attempts.insert(key.clone(), Arc::clone(&attempt));
        let inbox = self.inbox.clone();
        tokio::task::spawn_local(async move {
            // On the heap, as it is many tasks in one.
            let reported = Box::pin(attempt.run()).await;
            // The loop has ended: then the process ends.
            let _ = inbox.send(Input::Ended(key, reported)).await;
        });
    }

    fn ended(&self, key: Key, reported: bool) {
        let inbox = self.inbox.clone();
        tokio::task::spawn_local(async move {
            let _ = inbox.send(Input::Ended(key, reported)).await;
        });
    }

    /// For an attempt of which this host has nothing, not even its token.
    fn report_gone(&self, key: Key, status: &str, why: String) {
        tracing::warn!("{key} does not run here: reporting {status} ({why})");
        let context = Arc::clone(&self.context);
        let report = StatusReport { error: Some(why), ..key.report(status) };
        tokio::task::spawn_local(async move {
            let what = format!("reporting that {key} is not here");
            if let Err(error) =
                until_answered(&context.online, &what, async || context.api.report_gone(&key.job_id, &report).await)
                    .await
            {
                tracing::warn!("{what}: {error}");
            }
        });
    }

    /// Tells the orchestrator, if it listens.
    async fn goodbye(&self, session: &Session) {
        let Some(worker_id) = session.worker_id() else { return };
        if self.context.refused.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let body = Disconnect { worker_id: Some(worker_id), left_running: self.decisions.running() };
        match tokio::time::timeout(GOODBYE, self.context.api.disconnect(&body)).await {
            Ok(Ok(())) => tracing::info!("disconnected, {} attempt(s) left running", body.left_running.len()),
            Ok(Err(error)) => tracing::warn!("could not say good-bye: {error}"),
            Err(_) => tracing::warn!("could not say good-bye in time"),
        }
    }
}

/// The next signal, as an exit code.
async fn signalled((terminate, interrupt): &mut (Signal, Signal)) -> u8 {
    tokio::select! {
        _ = terminate.recv() => 128 + 15,
        _ = interrupt.recv() => 128 + 2,
    }
}
