//! Reaps the processes below the supervisor, and leaves none behind.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::trainer_exit::{ReportedExit, TrainerExit};
use crate::worker::cgroup::Cgroup;
use crate::worker::process::{descendants, signal_group};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Reaps children: the trainer, and every orphan of its tree.
pub struct Reaper {
    children: tokio::signal::unix::Signal,
    trainer: Option<i32>,
    /// The trainer's exit, if an init process is between it and this process.
    reported_exit: Option<ReportedExit>,
    /// Notifies about that, while more reports are possible.
    receiver: Option<Receiver>,
    /// Exit of the watched child.
    child_exit: Option<TrainerExit>,
    /// Exit of the trainer.
    trainer_exit: Option<TrainerExit>,
}

impl Reaper {
    /// Create before the trainer starts.
    pub fn new() -> io::Result<Self> {
        let children = signal(SignalKind::child())?;
        Ok(Self { children, trainer: None, reported_exit: None, receiver: None, child_exit: None, trainer_exit: None })
    }

    /// Sets the trainer, or the init process that reports its exit.
    pub fn set_trainer(&mut self, pid: i32, reports: Option<(ReportedExit, Receiver)>) {
        self.trainer = Some(pid);
        (self.reported_exit, self.receiver) = reports.unzip();
    }

    /// Exit code and signal of the trainer, once it has exited.
    pub fn trainer_exit(&mut self) -> TrainerExit {
        self.has_trainer_ended();
        self.trainer_exit.unwrap_or_default()
    }

    /// Waits for the trainer. Cancel-safe.
    pub async fn wait_for_trainer(&mut self) {
        while !self.has_trainer_ended() {
            tokio::select! {
                _ = self.children.recv() => {}
                () = wait_for_reports(self.receiver.as_ref()) => self.read_reports(),
            }
        }
    }

    /// Whether it has exited by now.
    pub fn has_trainer_ended(&mut self) -> bool {
        self.reap();
        // Order matters: an init process reports before it exits, and one that was killed reports nothing.
        let reported_exit = self.reported_exit.as_ref().and_then(ReportedExit::trainer_exit);
        self.trainer_exit = self.trainer_exit.or(reported_exit).or(self.child_exit);
        self.trainer_exit.is_some()
    }

    fn read_reports(&mut self) {
        if let (Some(reported), Some(receiver)) = (&self.reported_exit, &self.receiver)
            && !reported.read_reports(receiver)
        {
            self.receiver = None;
        }
    }

    /// Sends SIGTERM to the trainer and its group.
    pub fn send_sigterm(&self) {
        // Once reaped, its PID may be another process's.
        if let Some(pid) = self.trainer.filter(|_| self.child_exit.is_none()) {
            signal_group(pid, Signal::SIGTERM);
        }
    }

    /// Reaps all children that have exited. Returns whether others are left.
    fn reap(&mut self) -> bool {
        loop {
            let (pid, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, (Some(code), None)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, (None, Some(signal as i32))),
                Ok(WaitStatus::StillAlive) => return true,
                Err(Errno::ECHILD) => return false,
                Ok(_) | Err(_) => continue,
            };
            if Some(pid) == self.trainer.map(Pid::from_raw) {
                self.child_exit = Some(status);
            }
        }
    }

    /// Terminates all processes below this one: asks, and after the grace period kills, until none is left. Processes
    /// that left the trainer's group or session are found too, because their orphans become this process's children; a
    /// control group contains all of them and is killed at once.
    pub async fn terminate_all(&mut self, grace: Duration, group: Option<&Cgroup>) {
        let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
        let started_at = Instant::now();
        let mut terminated = false;
        loop {
            let has_children = self.reap();
            if !has_children && group.is_none_or(Cgroup::is_empty) {
                return;
            }
            let remaining = descendants(own_pid);
            let is_grace_over = started_at.elapsed() >= grace;
            if is_grace_over && let Some(Err(error)) = group.map(Cgroup::kill) {
                tracing::debug!("cannot kill the trainer's cgroup: {error}");
            }
            for process in remaining.iter().filter(|_| is_grace_over || !terminated) {
                process.signal(if is_grace_over { Signal::SIGKILL } else { Signal::SIGTERM });
            }
            terminated = true;
            let _ = tokio::time::timeout(POLL_INTERVAL, self.children.recv()).await;
        }
    }
}

/// Waits for reports, or forever if there are none.
async fn wait_for_reports(receiver: Option<&Receiver>) {
    match receiver {
        // A pipe that cannot be polled is read when a child exits.
        Some(receiver) if receiver.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
