//! The processes below the supervisor: it reaps every one of them, and leaves none behind.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::cgroup::Cgroup;
use crate::process::{descendants, signal_group};
use crate::sandbox::report::{self, Report, Reports};

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(50);

/// Reaps children: the trainer, and every orphan of its tree.
pub struct Reaper {
    children: tokio::signal::unix::Signal,
    trainer: Option<i32>,
    group: Option<Cgroup>,
    /// Says how the trainer ended, where an init process is between it and this one.
    reports: Option<pipe::Receiver>,
    unread: Vec<u8>,
    /// How the watched child ended.
    head: Option<Ending>,
    /// How the trainer ended.
    status: Option<Ending>,
}

/// Exit code and signal.
type Ending = (Option<i32>, Option<i32>);

impl Reaper {
    /// From before the trainer starts.
    pub fn new() -> io::Result<Self> {
        let children = signal(SignalKind::child())?;
        Ok(Self { children, trainer: None, group: None, reports: None, unread: Vec::new(), head: None, status: None })
    }

    /// This child is the trainer, or the init process above it which reports its end; all of its tree is in this group, if
    /// there is one.
    ///
    /// # Errors
    /// If the reports cannot be waited for.
    pub fn watch(&mut self, pid: i32, group: Option<Cgroup>, reports: Option<Reports>) -> io::Result<()> {
        self.trainer = Some(pid);
        self.group = group;
        if let Some(reports) = reports {
            let (pipe, unread) = reports.into_pipe();
            self.unread = unread;
            self.reports = Some(pipe::Receiver::from_owned_fd(pipe)?);
        }
        Ok(())
    }

    /// Exit code and signal of the trainer, once it has ended.
    pub fn trainer_status(&mut self) -> Ending {
        self.has_trainer_ended();
        self.status.unwrap_or_default()
    }

    /// Waits for the trainer; may be dropped and called again.
    pub async fn trainer_ended(&mut self) {
        while !self.has_trainer_ended() {
            tokio::select! {
                _ = self.children.recv() => {}
                () = readable(self.reports.as_ref()) => {}
            }
        }
    }

    /// Whether it has ended by now.
    pub fn has_trainer_ended(&mut self) -> bool {
        self.reap();
        // After: an init process reports before it ends, and one that was killed reports nothing.
        self.read_reports();
        self.status = self.status.or(self.head);
        self.status.is_some()
    }

    /// Takes what the init process has reported. Its silence says nothing as long as it lives.
    fn read_reports(&mut self) {
        while let Some(pipe) = &self.reports {
            let mut bytes = [0; 1024];
            match pipe.try_read(&mut bytes) {
                Ok(0) => self.reports = None,
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.reports = None,
            }
        }
        while let Ok(Some(report)) = report::take_line(&mut self.unread) {
            if let Report::Ended { code, signal } = report {
                self.status = Some((code, signal));
            }
        }
    }

    /// SIGTERM to the trainer and its group.
    pub fn ask_to_stop(&self) {
        // Once reaped, its number may be somebody else's.
        if let Some(pid) = self.trainer.filter(|_| self.head.is_none()) {
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
                self.head = Some(status);
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

/// Waits for reports, or for ever where none come.
async fn readable(reports: Option<&pipe::Receiver>) {
    match reports {
        // A pipe that cannot be waited for is read when a child ends.
        Some(pipe) if pipe.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
