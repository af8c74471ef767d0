//! Process 1 of a container: the agent runs as its child, so that signals reach it and no zombies remain.
//!
//! Orphans in a container become children of process 1. The agent must not wait for children that it did not start,
//! because it would take their exits from the code that started them. So this process only reaps, forwards signals, and
//! restarts an agent that was killed, which then adopts its running trainers.

use std::process::Command;
use std::time::Duration;

use clap::ArgMatches;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::worker::exit::FatalError;

/// The agent handles these.
const FORWARDED_SIGNALS: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// Delay before an agent that was killed is restarted.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// Exit code of a program that has panicked.
const PANIC_EXIT_CODE: i32 = 101;

/// How the agent ended.
struct AgentExit {
    code: u8,
    /// Killed or panicked.
    was_killed: bool,
}

/// Runs the agent and exits with its code, unless the agent was killed.
///
/// # Errors
/// If it cannot be started.
pub fn run_as_init(matches: &ArgMatches) -> Result<u8, FatalError> {
    let start_error =
        |error: std::io::Error| FatalError::error(format!("cannot start the agent as process 1: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(start_error)?;
    runtime
        .block_on(async {
            // Registered before there is a child that could exit.
            let mut child_exits = signal(SignalKind::child())?;
            let mut signals = listen_for_signals()?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(std::env::args_os().skip(1));
            if matches.value_source("on_stop").is_none() {
                // Everything in the container ends with process 1: nothing can be left running.
                command.arg("--on-stop=requeue");
            }
            let mut start_agent = || i32::try_from(command.spawn()?.id()).map_err(std::io::Error::other);
            let (mut agent, mut is_stopping) = (start_agent()?, false);
            loop {
                match reap_children(agent) {
                    Some(AgentExit { was_killed: true, code }) if !is_stopping => {
                        tracing::error!("the agent was killed (exit code {code}); restarting it to adopt its jobs");
                        tokio::time::sleep(RESTART_DELAY).await;
                        agent = start_agent()?;
                    }
                    Some(exit) => return Ok(exit.code),
                    None => {}
                }
                tokio::select! {
                    _ = child_exits.recv() => {}
                    Some(signal) = signals.recv() => {
                        is_stopping = true;
                        // If it has just exited, the next iteration reaps it.
                        let _ = kill(Pid::from_raw(agent), signal);
                    }
                }
            }
        })
        .map_err(start_error)
}

fn listen_for_signals() -> std::io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(8);
    for forwarded in FORWARDED_SIGNALS {
        let (mut stream, sender) = (signal(SignalKind::from_raw(forwarded as i32))?, sender.clone());
        tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(forwarded).await.is_ok() {} });
    }
    Ok(receiver)
}

/// Reaps all children that have exited. Returns the agent's exit, if it is among them.
fn reap_children(agent: i32) -> Option<AgentExit> {
    loop {
        let (pid, code, killed) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, code, code == PANIC_EXIT_CODE),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32, true),
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
            Ok(_) | Err(_) => continue,
        };
        if pid.as_raw() == agent {
            return Some(AgentExit {
                code: u8::try_from(code).unwrap_or(crate::worker::exit::ERROR),
                was_killed: killed,
            });
        }
    }
}
