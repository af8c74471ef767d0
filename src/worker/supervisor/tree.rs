//! The processes below the supervisor: it reaps every one of them, and leaves none behind.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::cgroup::Cgroup;
use super::ending::{Ending, Reported};
use crate::process::{descendants, signal_group};

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(50);

/// Reaps children: the trainer, and every orphan of its tree.
pub struct Reaper {
    children: tokio::signal::unix::Signal,
    trainer: Option<i32>,
    group: Option<Cgroup>,
    /// Says how the trainer ended, where an init process is between it and this one.
    reported: Option<Reported>,
    /// Who waits for that, as long as there can be more.
    news: Option<Receiver>,
    /// How the watched child ended.
    head: Option<Ending>,
    /// How the trainer ended.
    status: Option<Ending>,
}

impl Reaper {
    /// From before the trainer starts.
    pub fn new() -> io::Result<Self> {
        let children = signal(SignalKind::child())?;
        Ok(Self { children, trainer: None, group: None, reported: None, news: None, head: None, status: None })
    }

    /// This child is the trainer, or the init process above it which reports its end; all of its tree is in this group, if
    /// there is one.
    pub fn watch(&mut self, pid: i32, group: Option<Cgroup>, reports: Option<(Reported, Receiver)>) {
        self.trainer = Some(pid);
        self.group = group;
        (self.reported, self.news) = reports.unzip();
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
                () = told(self.news.as_ref()) => self.take_news(),
            }
        }
    }

    /// Whether it has ended by now.
    pub fn has_trainer_ended(&mut self) -> bool {
        self.reap();
        // After: an init process reports before it ends, and one that was killed reports nothing.
        let reported = self.reported.as_ref().and_then(Reported::ended);
        self.status = self.status.or(reported).or(self.head);
        self.status.is_some()
    }

    fn take_news(&mut self) {
        if let (Some(reported), Some(news)) = (&self.reported, &self.news)
            && !reported.take(news)
        {
            self.news = None;
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
    /// there is one, holds them all and dies at once. Answers with that group, which is empty and to be removed.
    pub async fn end_all(&mut self, grace: Duration) -> Option<Cgroup> {
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
        self.group.take()
    }
}

/// Waits for reports, or for ever where none come.
async fn told(news: Option<&Receiver>) {
    match news {
        // A pipe that cannot be waited for is read when a child ends.
        Some(news) if news.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
