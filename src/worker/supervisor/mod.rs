//! The supervisor: a small process of its own, one per attempt, that outlives the agent.
//!
//! It starts the trainer with a plain file as its output, so that no reader can ever hold it up, nor the death of anything
//! but the trainer cut it off, and bounds that file. It is the reaper of all orphans below it, keeps the webhook listener
//! (whose port is part of the job's configuration), carries out the order to stop, ends an exclusive job in time when its
//! lease is not renewed, and writes down how everything ended, once no process of the attempt is left. It never speaks to
//! the orchestrator, and knows no token but the webhook's.

pub mod cgroup;
mod ending;
mod events;
mod guard;
mod lease;
mod listener;
mod media;
mod oom;
mod orders;
pub mod spool;
mod told;
pub mod trainer;
mod tree;
mod usage;
mod watch;

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use crate::clock;
use crate::exit::{self, Fatal};
use crate::files::{AttemptDir, Exit, Running, Secrets, Spec, StopCause, VERSION};
use crate::jobconfig::{self, Local};
use crate::process::{self, ProcId};

use cgroup::Cgroup;
use ending::Reported;
use guard::Guard;
use oom::OutOfMemory;
use orders::Orders;
use spool::Keeper;
use tree::Reaper;

/// How long a killed process may take to be gone.
const DYING: Duration = Duration::from_millis(20);
/// How long the end is tried to be written down, and how often.
const LAST_WORD: Duration = Duration::from_mins(10);
const AGAIN: Duration = Duration::from_secs(1);
/// How long the rest of a tree gets when its head is gone.
const REST_GRACE: Duration = Duration::from_secs(3);

/// The hidden subcommand.
///
/// # Errors
/// If not even the end can be written down.
pub fn main(path: &Path) -> Result<u8, Fatal> {
    crate::cli::start_logging(false, app::logging::Format::Text);
    let path = std::path::absolute(path).map_err(|error| Fatal::error(error.to_string()))?;
    let dir = AttemptDir::at(&path);
    // Away from the agent's terminal and process group; it fails if that is so already.
    let _ = nix::unistd::setsid();
    let Some(_lock) = sole(&dir).map_err(|error| Fatal::error(format!("{}: {error}", path.display())))? else {
        return Ok(exit::OK);
    };
    end_unknown(&dir);
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| Fatal::error(format!("cannot become the reaper of the trainer's processes: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fatal::error(error.to_string()))?;
    let ended = runtime.block_on(supervise(&dir)).unwrap_or_else(|never_ran| never_ran);
    write_down(&dir, &ended).map_err(|error| Fatal::error(format!("cannot write exit.json: {error}")))?;
    Ok(exit::OK)
}

/// Writes down how it ended, as soon as the disk takes it: an end that nobody knows would count as a failure of the job.
fn write_down(dir: &AttemptDir, ended: &Exit) -> io::Result<()> {
    let tries = LAST_WORD.as_secs() / AGAIN.as_secs();
    for left in (0..tries).rev() {
        match dir.write("exit.json", ended) {
            Err(error) if left > 0 => {
                if left + 1 == tries {
                    tracing::error!("exit.json cannot be written, trying for {} s: {error}", LAST_WORD.as_secs());
                }
                std::thread::sleep(AGAIN);
            }
            done => return done,
        }
    }
    Ok(())
}

/// Whether this is the only supervisor that this attempt ever had; an agent that starts again may ask for a second one.
fn sole(dir: &AttemptDir) -> io::Result<Option<Flock<File>>> {
    let file = File::create(dir.join("supervisor.lock"))?;
    let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return Ok(None) };
    let used = dir.join("supervisor.json").exists() || dir.join("exit.json").exists();
    Ok((!used).then_some(lock))
}

/// A supervisor that was killed before it had written down its trainer has left one running: there must not be two.
fn end_unknown(dir: &AttemptDir) {
    let marker = format!("SIMPLETUNER_STOP_FILE={}", dir.stop_file().display());
    loop {
        let left = process::with_environment(&marker);
        if left.is_empty() {
            return;
        }
        for process in left {
            tracing::warn!("ending process {}, which an earlier supervisor has left", process.pid);
            process.signal(Signal::SIGKILL);
        }
        std::thread::sleep(DYING);
    }
}

/// The end of an attempt whose trainer never ran.
fn not_run(error: String, host_fault: bool) -> Exit {
    Exit { version: VERSION, error: Some(error), host_fault, ended_at: clock::now(), ..Exit::default() }
}

/// Another host may do better.
#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err asks for")]
fn no_disk(error: io::Error) -> Exit {
    not_run(format!("the attempt's directory cannot be used: {error}"), true)
}

async fn supervise(dir: &AttemptDir) -> Result<Exit, Exit> {
    let disk = no_disk;
    let spec: Spec = dir.read("spec.json").map_err(disk)?.ok_or_else(|| disk(io::ErrorKind::NotFound.into()))?;
    let secrets: Secrets = dir.read("secrets.json").map_err(disk)?.unwrap_or_default();
    let mut orders = Orders::new(dir, &spec).map_err(disk)?;
    let guard = orders.guard().map_err(disk)?;
    if let Some(cause) = orders.forbids() {
        return Ok(Exit { stopped: Some(cause), ..not_run_by_order() });
    }
    for own in [dir.output(), dir.control(), dir.work()] {
        std::fs::create_dir_all(own).map_err(disk)?;
    }
    dir.hold_reserve().map_err(disk)?;
    let events = events::Events::open(dir, spec.limits.webhook.values).map_err(disk)?;
    let listener =
        listener::Listener::start(spec.limits.webhook, secrets.webhook.clone(), events).await.map_err(disk)?;
    write_config(dir, &spec, &secrets, listener.port()).map_err(|sentence| not_run(sentence, false))?;
    let keeper = Keeper::start(dir, spec.limits.spool_bytes).map_err(disk)?;

    let mut reaper = Reaper::new().map_err(disk)?;
    let memory = match begin(dir, &spec, &mut reaper, &guard, listener.port()) {
        Ok(memory) => memory,
        Err(never_ran) => {
            // It may have begun, and only not been written down.
            let group = reaper.end_all(Duration::ZERO).await;
            group.inspect(Cgroup::remove);
            return Err(never_ran);
        }
    };
    let stopped = watch::watch(dir, &mut orders, &mut reaper).await;
    let rest = if stopped.is_some() { Duration::ZERO } else { orders.at_most(REST_GRACE) };
    let group = reaper.end_all(rest).await;
    let (out_of_memory, memory_limit) = (memory.has_killed(), memory.limit_reached());
    group.inspect(Cgroup::remove);
    let stopped = stopped.or_else(|| guard.end().then_some(StopCause::Lease));
    // Not before: a busy disk may hold it up for seconds.
    let disk = keeper.end(dir);
    listener.finish().await;
    let (code, signal) = reaper.trainer_status();
    let error = orders.too_much().filter(|_| stopped == Some(StopCause::Disk));
    let ended_at = clock::now();
    let end = Exit { version: VERSION, code, signal, stopped, error, ..Exit::default() };
    Ok(Exit { out_of_memory, memory_limit, disk, ended_at, ..end })
}

/// Starts the trainer, and writes down that it runs.
fn begin(dir: &AttemptDir, spec: &Spec, reaper: &mut Reaper, guard: &Guard, port: u16) -> Result<OutOfMemory, Exit> {
    let group = Cgroup::make(&spec.key, spec.place.as_ref())
        .inspect_err(|error| tracing::debug!("without a cgroup: {error}"))
        .ok();
    let memory = OutOfMemory::before(group.as_ref());
    let (started, group) = match group {
        None => (trainer::start(dir, spec), None),
        Some(group) => match group.around(|| trainer::start(dir, spec)) {
            (started @ Ok(_), Ok(())) => (started, Some(group)),
            (started, moved) => {
                tracing::debug!("without a cgroup: {moved:?}");
                group.remove();
                (started, None)
            }
        },
    };
    let trainer::Started { pid, reports } = started
        .inspect_err(|failure| trainer::note(dir, &failure.why))
        .map_err(|failure| not_run(failure.why, failure.host_fault))?;
    let cgroup = group.as_ref().map(|group| group.path().to_owned());
    // It may be a zombie by now, but nobody else reaps it.
    let trainer = ProcId::of(pid).unwrap_or(ProcId { pid, start: 0 });
    let reports = reports.map(Reported::of).transpose().map_err(no_disk)?;
    guard.watch(trainer, group.clone(), reports.as_ref().map(|(reported, _)| reported.clone()));
    reaper.watch(pid, group, reports);
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let running = Running {
        version: VERSION,
        supervisor: ProcId::of(own).ok_or_else(|| not_run("/proc does not show the own process".to_owned(), true))?,
        trainer,
        port,
        started_at: clock::now(),
        cgroup,
    };
    dir.write("supervisor.json", &running).map_err(no_disk)?;
    Ok(memory)
}

fn not_run_by_order() -> Exit {
    Exit { version: VERSION, ended_at: clock::now(), ..Exit::default() }
}

fn write_config(dir: &AttemptDir, spec: &Spec, secrets: &Secrets, port: u16) -> Result<(), String> {
    let bundle = dir.bundle();
    let path = bundle.join(crate::bundle::CONFIG_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("config.json cannot be read: {error}"))?;
    let local = Local {
        bundle: &bundle,
        output: &dir.output(),
        port,
        webhook_secret: secrets.webhook.reveal(),
        resume: spec.resume,
    };
    let text = jobconfig::rewrite(&text, &local, |name| std::fs::read_to_string(bundle.join(name)).ok())?;
    crate::files::write_atomic(&path, text.as_bytes(), true)
        .and_then(|()| like_its_directory(&path))
        .map_err(|error| format!("config.json cannot be written: {error}"))
}

/// A trainer with a user of its own reads what belongs to that user.
fn like_its_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let (own, owner) = (std::fs::metadata(path)?, std::fs::metadata(directory)?);
    if own.uid() == owner.uid() {
        return Ok(());
    }
    lchown(path, Some(owner.uid()), Some(owner.gid()))
}
