//! The agent's event loop: inputs in, decisions from [`state::AgentState`], actions out. It blocks on nothing but the
//! next input.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use app::domain::text::is_plain;
use app::protocol::agents::{DisconnectRequest, RunningAttempt, StatusReport};
use nix::fcntl::{Flock, FlockArg};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::worker::api::{Api, ReconnectSignal, retry_until_answered};
use crate::worker::attempt::{AdoptOutcome, AttemptRunner};
use crate::worker::config::AgentConfig;
use crate::worker::context::{AgentContext, SharedStatus};
use crate::worker::disk_space::DiskSpaceMonitor;
use crate::worker::exit::FatalError;
use crate::worker::files::{self, AttemptKey, write_atomic};
use crate::worker::host_health::HostHealth;
use crate::worker::sandbox::users;
use crate::worker::session::AgentSession;
use crate::worker::state::{self, AgentAction, AgentInput, AgentPolicy, ProcessExit};
use crate::worker::supervisor_pool::SupervisorPool;
use crate::worker::{clock, daemon, gpu, limits, sandbox, spot};

/// Reported for an attempt of which this host has no files.
const UNKNOWN_ATTEMPT_ERROR: &str =
    "the worker has no files of this attempt (its disk was lost, or the offer never arrived)";
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the last reports after a signal, in addition to the trainers' grace period.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the agent until it exits.
///
/// # Errors
/// Exit code and message.
pub fn main(config: AgentConfig) -> Result<u8, FatalError> {
    let _lock = lock_work_dir(&config.work_dir)?;
    users::rename_old_owners_dir(&config.work_dir).map_err(|error| unusable_work_dir(&config.work_dir, &error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FatalError::error(format!("cannot start: {error}")))?;
    // The agent runs on this thread; only file I/O uses other threads.
    let result = tokio::task::LocalSet::new().block_on(&runtime, run(config));
    // File I/O that is still running does not delay the exit.
    runtime.shutdown_background();
    let exit = result?;
    match exit.sentence {
        Some(sentence) => Err(FatalError { code: exit.code, sentence }),
        None => Ok(exit.code),
    }
}

fn unusable_work_dir(work_dir: &Path, error: &std::io::Error) -> FatalError {
    FatalError::config(format!(
        "cannot use the work directory {}: {error}. Set another one with --work-dir or SIMPLETUNER_WORK_DIR",
        work_dir.display()
    ))
}

/// Locks the work directory for this process.
fn lock_work_dir(work_dir: &Path) -> Result<Flock<File>, FatalError> {
    let unusable = |error| unusable_work_dir(work_dir, &error);
    DirBuilder::new().recursive(true).mode(0o700).create(work_dir.join("jobs")).map_err(unusable)?;
    let file = File::create(work_dir.join("agent.lock")).map_err(unusable)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
        FatalError::config(format!(
            "another simpletuner-worker uses the work directory {}: stop it, or set another directory with --work-dir",
            work_dir.display()
        ))
    })
}

/// The persistent ID of this work directory, created at the first start. One token serves one installation at a time.
fn install_id(work_dir: &Path) -> Result<String, FatalError> {
    let file = work_dir.join("install-id");
    let unusable = |error: std::io::Error| FatalError::config(format!("cannot use {}: {error}", file.display()));
    match fs::read_to_string(&file) {
        // Earlier versions wrote it without a flush, so a crash of the host may have damaged it.
        Ok(id) if is_valid_id(id.trim()) => return Ok(id.trim().to_owned()),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {}
        Err(error) => return Err(unusable(error)),
    }
    let id =
        clock::random_secret().map_err(|error| FatalError::error(format!("cannot get random numbers: {error}")))?;
    write_atomic(&file, id.as_bytes(), true).map_err(unusable)?;
    Ok(id)
}

/// Whether the orchestrator accepts it.
fn is_valid_id(id: &str) -> bool {
    !id.is_empty() && is_plain(id, 256)
}

async fn run(config: AgentConfig) -> Result<ProcessExit, FatalError> {
    let listen = |kind| signal(kind).map_err(|error| FatalError::error(format!("cannot listen for signals: {error}")));
    let mut signals = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (hardware, gpus) = gpu::GpuMonitor::start(&config).await;
    tracing::info!("detected {} GPU(s), accelerator {}", hardware.gpus.len(), hardware.accelerator);
    let disk_space = DiskSpaceMonitor::start(&config);
    let sandbox = detect_sandbox(&config).await?;
    let host_health = HostHealth::examine(&config.trainer).await;
    let jobs = config.max_jobs.resolve(hardware.gpus.len());
    let limits = limits::HostLimits::set_up(&config.work_dir, config.job_limits, jobs);
    let cgroup_parent = limits.job_cgroup().map(|cgroup| cgroup.base.clone());
    let supervisors =
        SupervisorPool::new(usize::try_from(jobs).unwrap_or(usize::MAX), config.work_dir.clone(), cgroup_parent);
    let api = Api::new(&config)?;
    let boot_id =
        clock::random_secret().map_err(|error| FatalError::error(format!("cannot get random numbers: {error}")))?;
    let install_id = install_id(&config.work_dir)?;
    let context = Arc::new(AgentContext {
        config,
        api,
        reconnect_signal: ReconnectSignal::default(),
        hardware,
        gpus,
        disk_space,
        host_health,
        sandbox,
        limits,
        supervisors,
        boot_id,
        install_id,
        token_rejected: AtomicBool::new(false),
        status: SharedStatus::default(),
    });

    let (inbox, inputs) = mpsc::channel(64);
    let mut agent = AgentLoop::with_adopted_attempts(Arc::clone(&context), inbox.clone(), inputs)?;
    watch_host(&context, &inbox)?;
    let session =
        AgentSession::new(Arc::clone(&context), inbox, agent.running.subscribe(), agent.decline_requests.subscribe());
    let mut reporter = daemon::StatusReporter::new(context, session.reach());
    tokio::task::spawn_local(session.clone().run());
    let exit = agent.serve(&mut signals, &mut reporter).await;
    reporter.set_stopping();
    agent.disconnect(&session).await;
    Ok(exit)
}

/// Starts the tasks that tell the agent's loop what changes on this host.
fn watch_host(context: &Arc<AgentContext>, inbox: &mpsc::Sender<AgentInput>) -> Result<(), FatalError> {
    if let Some(service) = spot::find_service(&context.config.shutdown)? {
        let (task_context, to_agent) = (Arc::clone(context), inbox.clone());
        tokio::task::spawn_local(async move {
            task_context.status.set_host_termination(service.wait_for_termination().await);
            // The loop has ended, so the process exits.
            let _ = to_agent.send(AgentInput::HostTerminating).await;
        });
    }
    let (task_context, to_agent) = (Arc::clone(context), inbox.clone());
    tokio::task::spawn_local(async move { gpu::forward_added_gpus(&task_context.gpus, to_agent).await });
    let (task_context, to_agent) = (Arc::clone(context), inbox.clone());
    tokio::task::spawn_local(async move { task_context.host_health.watch(to_agent).await });
    Ok(())
}

/// Detects which sandbox levels this host supports. This takes as long as the trainer's Python takes to start.
async fn detect_sandbox(config: &AgentConfig) -> Result<sandbox::host::SandboxSupport, FatalError> {
    let config = config.clone();
    let detection =
        tokio::task::spawn_blocking(move || sandbox::host::SandboxSupport::detect(&config, &config.work_dir)).await;
    let host = detection.map_err(|error| FatalError::error(format!("cannot test the sandbox: {error}")))?;
    let (min_level, max_level) = (host.min_level.as_str(), host.max_level.as_str());
    tracing::info!(min_level, max_level, users = host.isolates_users, "sandbox for jobs");
    if let Some(reason) = host.cuda_block_reason() {
        tracing::warn!(reason, "CUDA does not start in jobs on this host");
    }
    if let Some(reason) = &host.limit_reason {
        tracing::warn!(max_level, %reason, "the full sandbox is not available on this host");
    }
    Ok(host)
}

struct AgentLoop {
    context: Arc<AgentContext>,
    decisions: state::AgentState,
    attempts: HashMap<AttemptKey, Arc<AttemptRunner>>,
    input_sender: mpsc::Sender<AgentInput>,
    inputs: mpsc::Receiver<AgentInput>,
    running: watch::Sender<Vec<RunningAttempt>>,
    /// How often this agent had to tell the orchestrator that it accepts no more jobs.
    decline_requests: watch::Sender<u32>,
}

impl AgentLoop {
    /// Includes the attempts that an earlier agent left on disk.
    fn with_adopted_attempts(
        context: Arc<AgentContext>,
        inbox: mpsc::Sender<AgentInput>,
        inputs: mpsc::Receiver<AgentInput>,
    ) -> Result<Self, FatalError> {
        let work_dir = &context.config.work_dir;
        let dirs = files::list_attempts(work_dir)
            .map_err(|error| FatalError::config(format!("cannot list the work directory: {error}")))?;
        let mut found = Vec::new();
        let mut active = Vec::new();
        for dir in dirs {
            match AttemptRunner::adopt(&context, dir) {
                AdoptOutcome::Active(attempt) => {
                    tracing::info!("adopting {}", attempt.key());
                    let (key, gpus) = (attempt.key().clone(), attempt.gpus().to_vec());
                    found.push(state::AdoptedAttempt { key, gpus, is_finished: false });
                    active.push(attempt);
                }
                AdoptOutcome::Finished(key) => {
                    found.push(state::AdoptedAttempt { key, gpus: Vec::new(), is_finished: true });
                }
                AdoptOutcome::Unrecognized => {}
            }
        }
        let policy = AgentPolicy {
            persistent: context.config.persistent,
            on_stop: context.config.on_stop,
            max_jobs: context.config.max_jobs.resolve(context.hardware.gpus.len()),
        };
        let decisions = state::AgentState::new(policy, found);
        let running = watch::Sender::new(decisions.running());
        let decline_requests = watch::Sender::new(0);
        let mut agent = Self {
            context,
            decisions,
            attempts: HashMap::new(),
            input_sender: inbox,
            inputs,
            running,
            decline_requests,
        };
        for attempt in active {
            agent.spawn_attempt(attempt);
        }
        agent.context.disk_space.request_prune();
        agent.context.supervisors.refill();
        Ok(agent)
    }

    /// Runs until the process is to exit.
    async fn serve(&mut self, signals: &mut (Signal, Signal), reporter: &mut daemon::StatusReporter) -> ProcessExit {
        let mut deadline: Option<(Instant, ProcessExit)> = None;
        loop {
            if let Some(exit) = reporter.update(&self.decisions.running()).and_then(|input| self.handle_input(input)) {
                return exit;
            }
            let wake_at = deadline.as_ref().map_or_else(|| Instant::now() + Duration::from_hours(1), |(at, _)| *at);
            let input = tokio::select! {
                biased;
                code = wait_for_signal(signals) => {
                    let exit = ProcessExit { code, sentence: None };
                    if deadline.is_some() {
                        tracing::warn!("second signal: exiting now");
                        return exit;
                    }
                    tracing::info!("asked to stop ({:?})", self.context.config.on_stop);
                    reporter.set_stopping();
                    deadline = Some((self.shutdown_deadline(), exit));
                    AgentInput::Signal(code)
                }
                Some(input) = self.inputs.recv() => input,
                () = reporter.wait_until_due() => continue,
                () = tokio::time::sleep_until(wake_at) => match deadline.take() {
                    Some((_, exit)) => return exit,
                    None => continue,
                },
            };
            if let Some(exit) = self.handle_input(input) {
                return exit;
            }
        }
    }

    /// When the process exits after a signal, even if reports are missing.
    fn shutdown_deadline(&self) -> Instant {
        let config = &self.context.config;
        let timeout = match config.on_stop {
            crate::worker::args::OnStop::Finish => Duration::from_hours(365 * 24),
            _ => config.stop_grace + REPORT_TIMEOUT,
        };
        Instant::now() + timeout
    }

    fn handle_input(&mut self, input: AgentInput) -> Option<ProcessExit> {
        if let AgentInput::Ended(key, _) = &input {
            self.attempts.remove(key);
            self.context.disk_space.request_prune();
        }
        let actions = self.decisions.handle(input);
        send_if_changed(&self.running, self.decisions.running());
        actions.into_iter().find_map(|action| self.apply(action))
    }

    fn apply(&mut self, action: AgentAction) -> Option<ProcessExit> {
        match action {
            AgentAction::Start(offer) => {
                tracing::info!("offered {} attempt {} ({})", offer.job_id, offer.attempt, offer.config_name);
                match AttemptRunner::create(&self.context, &offer) {
                    Ok(attempt) => self.spawn_attempt(attempt),
                    Err(error) => {
                        let key = AttemptKey { job_id: offer.job_id, attempt: offer.attempt };
                        // Without a report the job would be offered here again and again.
                        let reason = format!("the worker cannot create the job's directory: {error}");
                        self.report_unknown(key.clone(), "requeue", reason);
                        self.report_ended(key, false);
                    }
                }
            }
            AgentAction::Stop(key, cause) => {
                tracing::info!("stopping {key} ({cause:?})");
                if let Some(attempt) = self.attempts.get(&key) {
                    attempt.stop(cause);
                }
            }
            AgentAction::ReportGone(key, status) => self.report_unknown(key, status, UNKNOWN_ATTEMPT_ERROR.to_owned()),
            AgentAction::ResetHostHealth => self.context.host_health.reset(),
            AgentAction::DeclineOffers => self.decline_requests.send_modify(|count| *count += 1),
            AgentAction::Exit(exit) => return Some(exit),
        }
        None
    }

    fn spawn_attempt(&mut self, attempt: Arc<AttemptRunner>) {
        let key = attempt.key().clone();
        self.attempts.insert(key.clone(), Arc::clone(&attempt));
        let inbox = self.input_sender.clone();
        tokio::task::spawn_local(async move {
            // Boxed, because it combines many tasks.
            let reported = Box::pin(attempt.run()).await;
            // The loop has ended, so the process exits.
            let _ = inbox.send(AgentInput::Ended(key, reported)).await;
        });
    }

    fn report_ended(&self, key: AttemptKey, reported: bool) {
        let inbox = self.input_sender.clone();
        tokio::task::spawn_local(async move {
            let _ = inbox.send(AgentInput::Ended(key, reported)).await;
        });
    }

    /// Reports an attempt of which this host has nothing, not even its token.
    fn report_unknown(&self, key: AttemptKey, status: &str, reason: String) {
        tracing::warn!("{key} is not on this host: reporting {status} ({reason})");
        let context = Arc::clone(&self.context);
        let report = StatusReport { error: Some(reason), ..key.status_report(status) };
        tokio::task::spawn_local(async move {
            let action_name = format!("reporting {key} as missing");
            if let Err(error) = retry_until_answered(&context.reconnect_signal, &action_name, async || {
                context.api.report_unknown_attempt(&key.job_id, &report).await
            })
            .await
            {
                tracing::warn!("{action_name}: {error}");
            }
        });
    }

    /// Tells the orchestrator that the agent stops; its failure is ignored.
    async fn disconnect(&self, session: &AgentSession) {
        let Some(worker_id) = session.worker_id() else { return };
        if self.context.token_rejected.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let body = DisconnectRequest { worker_id: Some(worker_id), left_running: self.decisions.running() };
        match tokio::time::timeout(DISCONNECT_TIMEOUT, self.context.api.disconnect(&body)).await {
            Ok(Ok(())) => tracing::info!("disconnected, {} attempt(s) left running", body.left_running.len()),
            Ok(Err(error)) => tracing::warn!("cannot send the disconnect: {error}"),
            Err(_) => tracing::warn!("sending the disconnect timed out"),
        }
    }
}

/// Sends a value to a channel's receivers, unless they have it.
pub fn send_if_changed<T: PartialEq>(channel: &watch::Sender<T>, value: T) {
    channel.send_if_modified(|before| {
        let is_changed = *before != value;
        *before = value;
        is_changed
    });
}

/// Waits for the next signal and returns its exit code.
async fn wait_for_signal((terminate, interrupt): &mut (Signal, Signal)) -> u8 {
    tokio::select! {
        _ = terminate.recv() => 128 + 15,
        _ = interrupt.recv() => 128 + 2,
    }
}
