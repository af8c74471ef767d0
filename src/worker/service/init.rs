//! As process 1 of a container: the agent runs as its child, so that signals reach it and no zombie stays.
//!
//! Whatever lost its parent in a container becomes a child of process 1. The agent must not wait for children that it did
//! not start, as it would take their ends away from those that it did; this process does nothing else but start another
//! one where it was killed, as that finds its trainers running.

use std::process::Command;
use std::time::Duration;

use clap::ArgMatches;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::exit::Fatal;

/// Those are the agent's.
const PASSED_ON: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// Before an agent that was killed is followed by another.
const PAUSE: Duration = Duration::from_secs(1);
/// With this code a program ends that has panicked.
const PANICKED: i32 = 101;

/// How the agent ended.
struct End {
    code: u8,
    /// Not by its own will.
    killed: bool,
}

/// Runs the agent, and ends as it does, unless it was killed.
///
/// # Errors
/// If it cannot be started.
pub fn run(matches: &ArgMatches) -> Result<u8, Fatal> {
    let failed = |error: std::io::Error| Fatal::error(format!("cannot start the agent as process 1: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime
        .block_on(async {
            // Before there is anybody who could end.
            let mut ends = signal(SignalKind::child())?;
            let mut signals = listen()?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(std::env::args_os().skip(1));
            if matches.value_source("on_stop").is_none() {
                // With process 1 everything in the container ends: nothing can be left running.
                command.arg("--on-stop=requeue");
            }
            let mut start = || i32::try_from(command.spawn()?.id()).map_err(std::io::Error::other);
            let (mut agent, mut asked) = (start()?, false);
            loop {
                match reap(agent) {
                    Some(End { killed: true, code }) if !asked => {
                        tracing::error!("the agent was killed (exit code {code}); another one takes up what it ran");
                        tokio::time::sleep(PAUSE).await;
                        agent = start()?;
                    }
                    Some(end) => return Ok(end.code),
                    None => {}
                }
                tokio::select! {
                    _ = ends.recv() => {}
                    Some(signal) = signals.recv() => {
                        asked = true;
                        // It may have ended just now; then that is what is noticed next.
                        let _ = kill(Pid::from_raw(agent), signal);
                    }
                }
            }
        })
        .map_err(failed)
}

fn listen() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(8);
    for passed_on in PASSED_ON {
        let (mut stream, sender) = (signal(SignalKind::from_raw(passed_on as i32))?, sender.clone());
        tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(passed_on).await.is_ok() {} });
    }
    Ok(receiver)
}

/// Takes note of everybody who has ended. How the agent did, if it is among them.
fn reap(agent: i32) -> Option<End> {
    loop {
        let (pid, code, killed) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, code, code == PANICKED),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32, true),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
            Ok(_) | Err(_) => continue,
        };
        if pid.as_raw() == agent {
            return Some(End { code: u8::try_from(code).unwrap_or(crate::exit::ERROR), killed });
        }
    }
}
