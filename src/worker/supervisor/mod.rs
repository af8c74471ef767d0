//! The supervisor: a small process of its own, one per attempt, that outlives the agent.
//!
//! It starts the trainer with a plain file as its output, so that no reader can ever hold it up, nor the death of anything
//! but the trainer cut it off. It is the reaper of all orphans below it, keeps the webhook listener (whose port is part of
//! the job's configuration), carries out the order to stop, and writes down how everything ended, once no process of the
//! attempt is left. It never speaks to the orchestrator, and knows no token but the webhook's.

mod events;
mod listener;
mod media;
mod orders;
mod trainer;
mod tree;

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::clock;
use crate::exit::{self, Fatal};
use crate::files::{AttemptDir, Exit, Running, Secrets, Spec, StopCause, VERSION};
use crate::jobconfig::{self, Local};
use crate::process::ProcId;

use orders::Orders;
use tree::Reaper;

const SIGTERM: i32 = nix::sys::signal::Signal::SIGTERM as i32;
/// The exit code of those who end in order on SIGTERM, by convention.
const TERMINATED: i32 = 128 + SIGTERM;
/// Signals to a whole service come within this.
const TOGETHER: Duration = Duration::from_millis(500);
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
    nix::sys::prctl::set_child_subreaper(true)
        .map_err(|error| Fatal::error(format!("cannot become the reaper of the trainer's processes: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fatal::error(error.to_string()))?;
    let ended = runtime.block_on(supervise(&dir)).unwrap_or_else(|error| not_run(error, false));
    dir.write("exit.json", &ended).map_err(|error| Fatal::error(format!("cannot write exit.json: {error}")))?;
    Ok(exit::OK)
}

/// Whether this is the only supervisor that this attempt ever had; an agent that starts again may ask for a second one.
fn sole(dir: &AttemptDir) -> io::Result<Option<Flock<File>>> {
    let file = File::create(dir.join("supervisor.lock"))?;
    let Ok(lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return Ok(None) };
    let used = dir.join("supervisor.json").exists() || dir.join("exit.json").exists();
    Ok((!used).then_some(lock))
}

/// The end of an attempt whose trainer never ran.
fn not_run(error: String, host_fault: bool) -> Exit {
    Exit { version: VERSION, error: Some(error), host_fault, ended_at: clock::now(), ..Exit::default() }
}

async fn supervise(dir: &AttemptDir) -> Result<Exit, String> {
    let disk = |error: io::Error| format!("the attempt's directory cannot be used: {error}");
    let spec: Spec = dir.read("spec.json").map_err(disk)?.ok_or("the attempt's directory has no spec.json")?;
    let secrets: Secrets = dir.read("secrets.json").map_err(disk)?.unwrap_or_default();
    let mut orders = Orders::new(dir).map_err(disk)?;
    if let Some(order) = orders.current() {
        return Ok(Exit { stopped: Some(order.cause), ..not_run_by_order() });
    }
    std::fs::create_dir_all(dir.output()).map_err(disk)?;
    let events = events::Events::open(dir).map_err(disk)?;
    let listener = listener::Listener::start(secrets.webhook.clone(), events).await.map_err(disk)?;
    write_config(dir, &spec, &secrets, listener.port())?;

    let mut reaper = Reaper::new().map_err(disk)?;
    let pid = match trainer::start(dir, &spec) {
        Ok(pid) => pid,
        Err(sentence) => {
            trainer::note(dir, &sentence);
            return Err(sentence);
        }
    };
    reaper.watch(pid);
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let running = Running {
        version: VERSION,
        supervisor: ProcId::of(own).ok_or("/proc does not show the own process")?,
        // It may be a zombie by now, but nobody else reaps it.
        trainer: ProcId::of(pid).unwrap_or(ProcId { pid, start: 0 }),
        port: listener.port(),
        started_at: clock::now(),
    };
    dir.write("supervisor.json", &running).map_err(disk)?;
    let stopped = watch(dir, &mut orders, &mut reaper).await;
    reaper.end_all(if stopped.is_some() { Duration::ZERO } else { REST_GRACE }).await;
    listener.finish().await;
    let (code, signal) = reaper.trainer_status();
    Ok(Exit { version: VERSION, code, signal, stopped, ended_at: clock::now(), ..Exit::default() })
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
        .map_err(|error| format!("config.json cannot be written: {error}"))
}

/// A trainer that died of SIGTERM was most likely told together with its supervisor, by whoever ends the whole host: then
/// that was an order, and no failure of the job.
async fn told_meanwhile(orders: &mut Orders, reaper: &Reaper) -> Option<StopCause> {
    if !matches!(reaper.trainer_status(), (_, Some(SIGTERM)) | (Some(TERMINATED), _)) {
        return None;
    }
    tokio::time::timeout(TOGETHER, orders.next()).await.ok().map(|order| order.cause)
}

/// Waits for the trainer's end, by itself or by order. Answers with the order, if the trainer had not ended before it.
async fn watch(dir: &AttemptDir, orders: &mut Orders, reaper: &mut Reaper) -> Option<StopCause> {
    let mut order = tokio::select! {
        biased;
        () = reaper.trainer_ended() => return told_meanwhile(orders, reaper).await,
        order = orders.next() => order,
    };
    tracing::info!("stopping: {:?}, grace {} s", order.cause, order.grace_seconds);
    // The trainer may look for it between two steps.
    let _ = File::create(dir.stop_file());
    reaper.ask_to_stop();
    let began = tokio::time::Instant::now();
    loop {
        let deadline = began + Duration::from_secs(order.grace_seconds);
        tokio::select! {
            biased;
            () = reaper.trainer_ended() => break,
            () = tokio::time::sleep_until(deadline) => break,
            // A later order may shorten the grace, or change the reason.
            newer = orders.next() => order = newer,
        }
    }
    Some(order.cause)
}
