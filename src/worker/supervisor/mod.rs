//! The supervisor: a small separate process that outlives the agent, with one attempt at a time.
//!
//! The agent starts it in advance. It prepares an attempt while the agent still negotiates it, and starts the trainer once
//! the agent permits it. It starts the trainer with a plain file as its output, so that no reader can block it and no other process's exit
//! can interrupt it, and limits that file. It reaps all orphans below it, runs the webhook listener (whose port is part
//! of the job's configuration), handles stop requests, stops an exclusive job in time when its lease is not renewed,
//! and records how everything ended, once no process of the attempt is left. It never connects to the orchestrator, and
//! knows no token except the webhook's.

pub mod agent_pipe;
mod disk_usage;
mod event_log_line;
mod events;
pub mod lease;
mod lease_enforcer;
mod listener;
pub mod log_spool;
mod media;
mod oom_detector;
mod reaper;
mod result_flush;
mod sample_name;
mod stop_requests;
pub mod trainer;
mod trainer_exit;
mod trainer_group;
mod trainer_monitor;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::worker::cgroup::{self, Cgroup, EnteredCgroup};
use crate::worker::clock;
use crate::worker::exit::{self, FatalError};
use crate::worker::files::{
    AttemptDir, AttemptExit, AttemptSecrets, AttemptSpec, StopCause, SupervisorRecord, VERSION, open_private,
};
use crate::worker::job_config::{self, HostContext};
use crate::worker::process::{self, ProcId};

use agent_pipe::{AgentPipe, Assignment, SupervisorEvent, SupervisorOrder};
use lease_enforcer::LeaseEnforcer;
use log_spool::LogTruncator;
use oom_detector::OomDetector;
use reaper::Reaper;
use result_flush::ResultFlushes;
use stop_requests::StopRequests;
use trainer_exit::ReportedExit;
use trainer_group::TrainerGroup;

/// Time for a killed process to disappear.
const KILL_WAIT: Duration = Duration::from_millis(20);
/// How long a supervisor waits for an earlier one that has not recorded a trainer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long and how often recording the exit is retried.
const EXIT_WRITE_TIMEOUT: Duration = Duration::from_mins(10);
const EXIT_WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Grace period of remaining processes after the trainer's exit.
const REMAINING_GRACE: Duration = Duration::from_secs(3);

/// The hidden subcommand. Control groups of jobs are created below `cgroup_parent`, if it is set.
///
/// # Errors
/// If it cannot be a supervisor, or cannot even record an attempt's exit.
pub fn main(cgroup_parent: Option<&Path>) -> Result<u8, FatalError> {
    crate::worker::logging::init_logging(false, app::logging::LogLineFormat::Text);
    // Leaves the agent's terminal and process group; fails if that is already so.
    let _ = nix::unistd::setsid();
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| FatalError::error(format!("cannot become the reaper of the trainer's processes: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(serve(cgroup_parent)));
    served.map(|()| exit::OK).map_err(|error| FatalError::error(format!("the supervisor failed: {error}")))
}

/// Supervises one attempt after the other, until the agent has exited or has withdrawn an attempt.
async fn serve(cgroup_parent: Option<&Path>) -> io::Result<()> {
    let mut agent = AgentPipe::open()?;
    let mut sigterm = signal(SignalKind::terminate())?;
    let outside = cgroup::own_cgroup(None);
    let enter_group = || {
        let group = EnteredCgroup::create(cgroup_parent, outside.as_deref()?);
        group.inspect_err(|error| tracing::debug!("without a cgroup: {error}")).ok()
    };
    let mut group = enter_group();
    let mut flushes = ResultFlushes::default();
    loop {
        let order = tokio::select! {
            order = agent.next_order() => order,
            _ = sigterm.recv() => None,
        };
        let Some(SupervisorOrder::Prepare(assignment)) = order else { break };
        let trainer_group = group.as_ref().map(|group| group.group().clone());
        if !supervise_attempt(&mut agent, &assignment, &mut group, outside.as_deref(), &mut flushes).await? {
            break;
        }
        let is_connected = agent.send(SupervisorEvent::Ended);
        group = if is_connected { enter_group() } else { None };
        if group.is_none()
            && let Some(outside) = &outside
        {
            // If this fails, the next agent removes the group.
            let _ = cgroup::enter(outside);
        }
        trainer_group.inspect(Cgroup::remove);
        if !is_connected {
            break;
        }
    }
    if let Some(group) = group {
        group.leave()?;
        group.group().remove();
    }
    flushes.finish();
    Ok(())
}

/// Supervises one attempt to its recorded exit. Then nothing is left in the group but possibly this process. Returns false if
/// nothing has happened, because the agent has withdrawn or another supervisor has the attempt.
async fn supervise_attempt(
    agent: &mut AgentPipe,
    assignment: &Assignment,
    group: &mut Option<EnteredCgroup>,
    outside: Option<&Path>,
    flushes: &mut ResultFlushes,
) -> io::Result<bool> {
    let dir = AttemptDir::from_path(&std::path::absolute(&assignment.dir)?);
    let log = open_private(&dir.join("supervisor.log"))?;
    nix::unistd::dup2_stderr(&log)?;
    let Some(_lock) = lock_as_only_supervisor(&dir, log)? else { return Ok(false) };
    let started = Instant::now();
    let attempt_exit = match supervise(agent, &dir, &assignment.environment, group, outside).await {
        Ok(None) => return Ok(false),
        Ok(Some(attempt_exit)) | Err(attempt_exit) => attempt_exit,
    };
    write_exit(&dir, &attempt_exit)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write exit.json: {error}")))?;
    flushes.start(dir, attempt_exit, started.elapsed());
    Ok(true)
}

/// Records the exit as soon as the disk allows: an unknown exit would count as a failure of the job.
fn write_exit(dir: &AttemptDir, exit: &AttemptExit) -> io::Result<()> {
    let tries = EXIT_WRITE_TIMEOUT.as_secs() / EXIT_WRITE_INTERVAL.as_secs();
    for tries_left in (0..tries).rev() {
        match dir.write_json("exit.json", exit) {
            Err(error) if tries_left > 0 => {
                if tries_left + 1 == tries {
                    tracing::error!("cannot write exit.json, retrying for {} s: {error}", EXIT_WRITE_TIMEOUT.as_secs());
                }
                std::thread::sleep(EXIT_WRITE_INTERVAL);
            }
            result => return result,
        }
    }
    Ok(())
}

/// Locks the log of the attempt's supervisors, unless another one has ever started its trainer; a restarted agent may
/// assign a second supervisor.
fn lock_as_only_supervisor(dir: &AttemptDir, log: File) -> io::Result<Option<Flock<File>>> {
    let has_record = || dir.join("supervisor.json").exists() || dir.join("exit.json").exists();
    let mut file = log;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let lock = loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => break lock,
            Err(_) if has_record() || Instant::now() > deadline => return Ok(None),
            // One that gets no permit exits soon.
            Err((unlocked, _)) => file = unlocked,
        }
        std::thread::sleep(KILL_WAIT);
    };
    if has_record() {
        return Ok(None);
    }
    // Searching all processes takes milliseconds, so the first supervisor writes a line and does not.
    if lock.metadata()?.len() > 0 {
        kill_unrecorded_trainer(dir);
    }
    writeln!(&*lock, "supervised by process {}", std::process::id())?;
    Ok(Some(lock))
}

/// A supervisor that was killed before it recorded its trainer has left it running: there must not be two.
fn kill_unrecorded_trainer(dir: &AttemptDir) {
    let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
    loop {
        let remaining = process::find_by_environment(&marker);
        if remaining.is_empty() {
            return;
        }
        for process in remaining {
            tracing::warn!("killing process {}, left by an earlier supervisor", process.pid);
            process.signal(Signal::SIGKILL);
        }
        std::thread::sleep(KILL_WAIT);
    }
}

/// The exit of an attempt whose trainer never ran.
fn not_started(error: String, host_fault: bool) -> AttemptExit {
    AttemptExit { version: VERSION, error: Some(error), host_fault, ended_at: clock::now(), ..AttemptExit::default() }
}

/// Another host may run it.
#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err asks for")]
fn disk_error(error: io::Error) -> AttemptExit {
    not_started(format!("cannot use the attempt's directory: {error}"), true)
}

/// Returns the attempt's exit, or `None` if the agent permits no start. Takes the group once a trainer may be in it.
async fn supervise(
    agent: &mut AgentPipe,
    dir: &AttemptDir,
    environment: &BTreeMap<String, String>,
    group: &mut Option<EnteredCgroup>,
    outside: Option<&Path>,
) -> Result<Option<AttemptExit>, AttemptExit> {
    let spec: AttemptSpec =
        dir.read_json("spec.json").map_err(disk_error)?.ok_or_else(|| disk_error(io::ErrorKind::NotFound.into()))?;
    let secrets: AttemptSecrets = dir.read_json("secrets.json").map_err(disk_error)?.unwrap_or_default();
    for created in [dir.output_dir(), dir.control_dir(), dir.working_dir()] {
        std::fs::create_dir_all(created).map_err(disk_error)?;
    }
    dir.allocate_reserve().map_err(disk_error)?;
    let events = events::EventRecorder::open(dir, spec.limits.webhook.values).map_err(disk_error)?;
    let listener = listener::WebhookListener::start(spec.limits.webhook, secrets.webhook.clone(), events)
        .await
        .map_err(disk_error)?;
    write_config(dir, &spec, &secrets, listener.port()).map_err(|sentence| not_started(sentence, false))?;
    let truncator = LogTruncator::start(dir, spec.limits.spool_bytes).map_err(disk_error)?;

    let mut reaper = Reaper::new().map_err(disk_error)?;
    if !matches!(agent.next_order().await, Some(SupervisorOrder::Start)) {
        return Ok(None);
    }
    // Not earlier: an exclusive job has a lease only now.
    let mut stop_requests = StopRequests::new(dir, &spec).map_err(disk_error)?;
    let lease_enforcer = stop_requests.lease_enforcer().map_err(disk_error)?;
    if let Some(cause) = stop_requests.start_forbidden_by() {
        return Ok(Some(AttemptExit { stopped: Some(cause), ..stopped_before_start() }));
    }
    if let (Some(group), Some(limits)) = (group.as_ref(), &spec.cgroup) {
        group.apply_limits(limits);
    }
    let oom_detector = OomDetector::start(group.as_ref().map(EnteredCgroup::group), outside);
    let group = group.take().map(|group| TrainerGroup::new(group, lease_enforcer.enforced_group())).transpose();
    let mut group = group.map_err(disk_error)?;
    let to_kill = |group: &mut Option<TrainerGroup>| group.as_mut().and_then(TrainerGroup::leave_to_kill).cloned();
    let starter = TrainerStarter { dir, spec: &spec, environment, port: listener.port(), group: group.as_ref() };
    if let Err(attempt_exit) = starter.start(&mut reaper, &lease_enforcer) {
        // It may have started without being recorded.
        reaper.terminate_all(Duration::ZERO, to_kill(&mut group).as_ref()).await;
        lease_enforcer.stop();
        return Err(attempt_exit);
    }
    agent.send(SupervisorEvent::Recorded);
    let stopped = trainer_monitor::run_until_exit(dir, &mut stop_requests, &mut reaper).await;
    let grace = if stopped.is_some() { Duration::ZERO } else { stop_requests.limit_grace(REMAINING_GRACE) };
    let killed_group = to_kill(&mut group);
    reaper.terminate_all(grace, killed_group.as_ref()).await;
    let (out_of_memory, memory_limit) = (oom_detector.has_killed(), oom_detector.limit_reached());
    killed_group.inspect(Cgroup::remove);
    let has_lease_ended = lease_enforcer.stop();
    let stopped = stopped.or(has_lease_ended.then_some(StopCause::Lease));
    // Not earlier: a busy disk may block it for seconds.
    let disk = truncator.stop(dir);
    listener.finish().await;
    let (code, signal) = reaper.trainer_exit();
    let error = stop_requests.disk_limit_exceeded().filter(|_| stopped == Some(StopCause::Disk));
    let ended_at = clock::now();
    let exit = AttemptExit { version: VERSION, code, signal, stopped, error, ..AttemptExit::default() };
    Ok(Some(AttemptExit { out_of_memory, memory_limit, disk, ended_at, ..exit }))
}

/// What the start of a trainer needs.
struct TrainerStarter<'a> {
    dir: &'a AttemptDir,
    spec: &'a AttemptSpec,
    environment: &'a BTreeMap<String, String>,
    /// Of the webhook listener.
    port: u16,
    group: Option<&'a TrainerGroup>,
}

impl TrainerStarter<'_> {
    /// Starts the trainer, and records that it runs.
    fn start(&self, reaper: &mut Reaper, lease_enforcer: &LeaseEnforcer) -> Result<(), AttemptExit> {
        let dir = self.dir;
        let trainer::StartedTrainer { pid, reports } = trainer::start(dir, self.spec, self.environment)
            .inspect_err(|failure| trainer::append_to_log(dir, &failure.why))
            .map_err(|failure| not_started(failure.why, failure.host_fault))?;
        // It may be a zombie by now, but only this process reaps it.
        let trainer = ProcId::from_pid(pid).unwrap_or(ProcId { pid, start: 0 });
        let reports = reports.map(ReportedExit::from_reports).transpose().map_err(disk_error)?;
        lease_enforcer.set_target(trainer, reports.as_ref().map(|(reported, _)| reported.clone()));
        reaper.set_trainer(pid, reports);
        let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
        let record = SupervisorRecord {
            version: VERSION,
            supervisor: ProcId::from_pid(own_pid)
                .ok_or_else(|| not_started("/proc does not show this process".to_owned(), true))?,
            trainer,
            port: self.port,
            started_at: clock::now(),
            cgroup: self.group.map(|group| group.group().path().to_owned()),
        };
        dir.write_json_unsynced("supervisor.json", &record)
            .or_else(|_| dir.write_json("supervisor.json", &record))
            .map_err(disk_error)?;
        // Not earlier: until now an orphan is found by its environment.
        self.group.inspect(|group| group.set_started());
        Ok(())
    }
}

fn stopped_before_start() -> AttemptExit {
    AttemptExit { version: VERSION, ended_at: clock::now(), ..AttemptExit::default() }
}

fn write_config(dir: &AttemptDir, spec: &AttemptSpec, secrets: &AttemptSecrets, port: u16) -> Result<(), String> {
    let bundle = dir.bundle_dir();
    let path = bundle.join(crate::worker::bundle::CONFIG_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read config.json: {error}"))?;
    let local = HostContext {
        bundle: &bundle,
        output: &dir.output_dir(),
        port,
        webhook_secret: secrets.webhook.reveal(),
        resume: spec.resume,
    };
    let text = job_config::rewrite(&text, &local, |name| std::fs::read_to_string(bundle.join(name)).ok())?;
    crate::worker::files::write_atomic(&path, text.as_bytes(), false)
        .and_then(|()| chown_like_parent(&path))
        .map_err(|error| format!("cannot write config.json: {error}"))
}

/// A trainer with its own user can only read that user's files.
fn chown_like_parent(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let (file, parent) = (std::fs::metadata(path)?, std::fs::metadata(directory)?);
    if file.uid() == parent.uid() {
        return Ok(());
    }
    lchown(path, Some(parent.uid()), Some(parent.gid()))
}
