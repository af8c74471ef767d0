//! The supervisor: a small separate process, one per attempt, that outlives the agent.
//!
//! It prepares what it needs while the agent still negotiates the attempt, and starts the trainer once the agent permits
//! it. It starts the trainer with a plain file as its output, so that no reader can block it and no other process's exit
//! can interrupt it, and limits that file. It reaps all orphans below it, runs the webhook listener (whose port is part
//! of the job's configuration), handles stop requests, stops an exclusive job in time when its lease is not renewed,
//! and records how everything ended, once no process of the attempt is left. It never connects to the orchestrator, and
//! knows no token except the webhook's.

mod disk_usage;
mod event_log_line;
mod events;
mod lease;
mod lease_enforcer;
mod listener;
pub mod log_spool;
mod media;
mod oom_detector;
mod permit;
mod reaper;
mod sample_name;
mod stop_requests;
pub mod trainer;
mod trainer_exit;
mod trainer_monitor;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use crate::cgroup::Cgroup;
use crate::clock;
use crate::exit::{self, FatalError};
use crate::files::{AttemptDir, AttemptExit, AttemptSecrets, AttemptSpec, StopCause, SupervisorRecord, VERSION};
use crate::job_config::{self, HostContext};
use crate::process::{self, ProcId};

use lease_enforcer::LeaseEnforcer;
use log_spool::LogTruncator;
use oom_detector::OomDetector;
use reaper::Reaper;
use stop_requests::StopRequests;
use trainer_exit::ReportedExit;

/// Time for a killed process to disappear.
const KILL_WAIT: Duration = Duration::from_millis(20);
/// How long a supervisor waits for an earlier one that has not recorded a trainer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// How long and how often recording the exit is retried.
const EXIT_WRITE_TIMEOUT: Duration = Duration::from_mins(10);
const EXIT_WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Grace period of remaining processes after the trainer's exit.
const REMAINING_GRACE: Duration = Duration::from_secs(3);

/// The hidden subcommand.
///
/// # Errors
/// If not even the exit can be recorded.
pub fn main(path: &Path, waits_for_permit: bool) -> Result<u8, FatalError> {
    crate::logging::init_logging(false, app::logging::LogLineFormat::Text);
    let path = std::path::absolute(path).map_err(|error| FatalError::error(error.to_string()))?;
    let dir = AttemptDir::from_path(&path);
    // Leaves the agent's terminal and process group; fails if that is already so.
    let _ = nix::unistd::setsid();
    let Some(_lock) =
        lock_as_only_supervisor(&dir).map_err(|error| FatalError::error(format!("{}: {error}", path.display())))?
    else {
        return Ok(exit::OK);
    };
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| FatalError::error(format!("cannot become the reaper of the trainer's processes: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FatalError::error(error.to_string()))?;
    match runtime.block_on(supervise(&dir, waits_for_permit)) {
        // The agent has withdrawn: nothing has happened.
        Ok(None) => Ok(exit::OK),
        Ok(Some(attempt_exit)) | Err(attempt_exit) => {
            let written = write_exit(&dir, &attempt_exit);
            written.map_err(|error| FatalError::error(format!("cannot write exit.json: {error}")))?;
            Ok(exit::OK)
        }
    }
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

/// Whether this is the only supervisor that this attempt ever had; a restarted agent may start a second one.
fn lock_as_only_supervisor(dir: &AttemptDir) -> io::Result<Option<Flock<File>>> {
    let has_record = || dir.join("supervisor.json").exists() || dir.join("exit.json").exists();
    let mut file = File::options().write(true).create(true).truncate(false).open(dir.join("supervisor.lock"))?;
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
    // Searching all processes takes milliseconds, so the first supervisor leaves a mark and does not.
    if lock.metadata()?.len() > 0 {
        kill_unrecorded_trainer(dir);
    }
    (&*lock).write_all(b"used")?;
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

/// Returns the attempt's exit, or `None` if the agent permits no start.
async fn supervise(dir: &AttemptDir, waits_for_permit: bool) -> Result<Option<AttemptExit>, AttemptExit> {
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
    if waits_for_permit && !permit::wait_for_permit().await.map_err(disk_error)? {
        return Ok(None);
    }
    // Not earlier: an exclusive job has a lease only now.
    let mut stop_requests = StopRequests::new(dir, &spec).map_err(disk_error)?;
    let lease_enforcer = stop_requests.lease_enforcer().map_err(disk_error)?;
    if let Some(cause) = stop_requests.start_forbidden_by() {
        return Ok(Some(AttemptExit { stopped: Some(cause), ..stopped_before_start() }));
    }
    let oom_detector = match start_trainer(dir, &spec, &mut reaper, &lease_enforcer, listener.port()) {
        Ok(oom_detector) => oom_detector,
        Err(attempt_exit) => {
            // It may have started without being recorded.
            let group = reaper.terminate_all(Duration::ZERO).await;
            group.inspect(Cgroup::remove);
            return Err(attempt_exit);
        }
    };
    let stopped = trainer_monitor::run_until_exit(dir, &mut stop_requests, &mut reaper).await;
    let grace = if stopped.is_some() { Duration::ZERO } else { stop_requests.limit_grace(REMAINING_GRACE) };
    let group = reaper.terminate_all(grace).await;
    let (out_of_memory, memory_limit) = (oom_detector.has_killed(), oom_detector.limit_reached());
    group.inspect(Cgroup::remove);
    let stopped = stopped.or_else(|| lease_enforcer.stop().then_some(StopCause::Lease));
    // Not earlier: a busy disk may block it for seconds.
    let disk = truncator.stop(dir);
    listener.finish().await;
    let (code, signal) = reaper.trainer_exit();
    let error = stop_requests.disk_limit_exceeded().filter(|_| stopped == Some(StopCause::Disk));
    let ended_at = clock::now();
    let exit = AttemptExit { version: VERSION, code, signal, stopped, error, ..AttemptExit::default() };
    Ok(Some(AttemptExit { out_of_memory, memory_limit, disk, ended_at, ..exit }))
}

/// Starts the trainer, and records that it runs.
fn start_trainer(
    dir: &AttemptDir,
    spec: &AttemptSpec,
    reaper: &mut Reaper,
    lease_enforcer: &LeaseEnforcer,
    port: u16,
) -> Result<OomDetector, AttemptExit> {
    let group = Cgroup::create(&spec.key, spec.cgroup.as_ref())
        .inspect_err(|error| tracing::debug!("without a cgroup: {error}"))
        .ok();
    let oom_detector = OomDetector::start(group.as_ref());
    let (started, group) = match group {
        None => (trainer::start(dir, spec), None),
        Some(group) => match group.spawn_inside(|| trainer::start(dir, spec)) {
            (started @ Ok(_), Ok(())) => (started, Some(group)),
            (started, entered) => {
                tracing::debug!("without a cgroup: {entered:?}");
                group.remove();
                (started, None)
            }
        },
    };
    let trainer::StartedTrainer { pid, reports } = started
        .inspect_err(|failure| trainer::append_to_log(dir, &failure.why))
        .map_err(|failure| not_started(failure.why, failure.host_fault))?;
    let cgroup = group.as_ref().map(|group| group.path().to_owned());
    // It may be a zombie by now, but only this process reaps it.
    let trainer = ProcId::from_pid(pid).unwrap_or(ProcId { pid, start: 0 });
    let reports = reports.map(ReportedExit::from_reports).transpose().map_err(disk_error)?;
    lease_enforcer.set_target(trainer, group.clone(), reports.as_ref().map(|(reported, _)| reported.clone()));
    reaper.set_trainer(pid, group, reports);
    let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
    let record = SupervisorRecord {
        version: VERSION,
        supervisor: ProcId::from_pid(own_pid)
            .ok_or_else(|| not_started("/proc does not show this process".to_owned(), true))?,
        trainer,
        port,
        started_at: clock::now(),
        cgroup,
    };
    dir.write_json_unsynced("supervisor.json", &record)
        .or_else(|_| dir.write_json("supervisor.json", &record))
        .map_err(disk_error)?;
    permit::report_recorded();
    Ok(oom_detector)
}

fn stopped_before_start() -> AttemptExit {
    AttemptExit { version: VERSION, ended_at: clock::now(), ..AttemptExit::default() }
}

fn write_config(dir: &AttemptDir, spec: &AttemptSpec, secrets: &AttemptSecrets, port: u16) -> Result<(), String> {
    let bundle = dir.bundle_dir();
    let path = bundle.join(crate::bundle::CONFIG_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read config.json: {error}"))?;
    let local = HostContext {
        bundle: &bundle,
        output: &dir.output_dir(),
        port,
        webhook_secret: secrets.webhook.reveal(),
        resume: spec.resume,
    };
    let text = job_config::rewrite(&text, &local, |name| std::fs::read_to_string(bundle.join(name)).ok())?;
    crate::files::write_atomic(&path, text.as_bytes(), false)
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
