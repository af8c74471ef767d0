//! The processes below the supervisor: it reaps every one of them, and leaves none behind.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::cgroup::Cgroup;
use crate::process::{descendants, signal_group};

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(50);

/// Reaps children: the trainer, and every orphan of its tree.
pub struct Reaper {
    children: tokio::signal::unix::Signal,
    trainer: Option<i32>,
    group: Option<Cgroup>,
    status: Option<(Option<i32>, Option<i32>)>,
}

impl Reaper {
    /// From before the trainer starts.
    pub fn new() -> io::Result<Self> {
        Ok(Self { children: signal(SignalKind::child())?, trainer: None, group: None, status: None })
    }

    /// This child is the trainer, and all of its tree is in this group, if there is one.
    pub fn watch(&mut self, pid: i32, group: Option<Cgroup>) {
        self.trainer = Some(pid);
        self.group = group;
    }

    /// Exit code and signal of the trainer, once it has ended.
    pub fn trainer_status(&self) -> (Option<i32>, Option<i32>) {
        self.status.unwrap_or_default()
    }

    /// Waits for the trainer; may be dropped and called again.
    pub async fn trainer_ended(&mut self) {
        while !self.has_trainer_ended() {
            self.children.recv().await;
        }
    }

    /// Whether it has ended by now.
    pub fn has_trainer_ended(&mut self) -> bool {
        self.reap();
        self.status.is_some()
    }

    /// SIGTERM to the trainer and its group.
    pub fn ask_to_stop(&self) {
        // Once reaped, its number may be somebody else's.
        if let Some(pid) = self.trainer.filter(|_| self.status.is_none()) {
            signal_group(pid, Signal::SIGTERM);
        }
    }

    /// Takes note of every child that has ended. Whether there are others.
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
                self.status = Some(status);
            }
        }
    }

    /// Ends every process below: asks, and after the grace kills, until there is none. Processes that left the trainer's
    /// group or session are found as well, as their orphans become this process's children; and its control group, where
    /// there is one, holds them all and dies at once.
    pub async fn end_all(&mut self, grace: Duration) {
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let began = Instant::now();
        let mut asked = false;
        loop {
            let others = self.reap();
            if !others && self.group.as_ref().is_none_or(Cgroup::is_empty) {
                break;
            }
            let left = descendants(own);
            let over = began.elapsed() >= grace;
            if over && let Some(Err(error)) = self.group.as_ref().map(Cgroup::kill) {
                tracing::debug!("the trainer's cgroup cannot be killed: {error}");
            }
            for process in left.iter().filter(|_| over || !asked) {
                process.signal(if over { Signal::SIGKILL } else { Signal::SIGTERM });
            }
            asked = true;
            let _ = tokio::time::timeout(LOOK, self.children.recv()).await;
        }
        if let Some(group) = self.group.take() {
            group.remove();
        }
    }
}
