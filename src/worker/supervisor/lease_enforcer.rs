//! Kills an exclusive trainer shortly before its lease ends, even if the rest of this process hangs: in a thread that
//! accesses no file of the work directory, whose disk may hang. The supervisor's log is such a file, so it logs
//! nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::Signal;

use super::lease::{CachedLease, LeaseStatus, POLL_INTERVAL};
use super::trainer_exit::ReportedExit;
use crate::worker::cgroup::Cgroup;
use crate::worker::process::{ProcId, descendants, signal_group};

/// What to kill, once it has started.
#[derive(Default)]
struct EnforcementTarget {
    trainer: Option<ProcId>,
    group: Option<Cgroup>,
    /// The trainer's exit, if `trainer` is the init process.
    reported_exit: Option<ReportedExit>,
}

#[derive(Default)]
struct EnforcerState {
    target: Mutex<EnforcementTarget>,
    /// Whether the trainer was alive when it was killed.
    has_killed: AtomicBool,
}

pub struct LeaseEnforcer {
    shared: Arc<EnforcerState>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl LeaseEnforcer {
    /// For a job that is not exclusive: it may outlive its lease.
    pub fn disabled() -> Self {
        Self { shared: Arc::default(), thread: None }
    }

    /// Starts before the trainer does.
    pub fn start(lease: &CachedLease) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (lease, shared) = (lease.clone(), Arc::<EnforcerState>::default());
        let state = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("lease-enforcer".to_owned()).spawn(move || state.run(&lease, &stopped))?;
        Ok(Self { shared, thread: Some((stop, thread)) })
    }

    /// Sets the trainer, or the init process that reports its exit.
    pub fn set_target(&self, trainer: ProcId, reported_exit: Option<ReportedExit>) {
        let mut target = self.shared.target();
        (target.trainer, target.reported_exit) = (Some(trainer), reported_exit);
    }

    /// Where the control group of all processes is set.
    pub fn enforced_group(&self) -> EnforcedGroup {
        EnforcedGroup(Arc::clone(&self.shared))
    }

    /// Stops the thread, which must not kill the next trainer. Returns whether it has killed this one.
    pub fn stop(mut self) -> bool {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // It does not panic.
            let _ = thread.join();
        }
        self.shared.has_killed.load(Ordering::SeqCst)
    }
}

/// The control group that a lease enforcer kills.
pub struct EnforcedGroup(Arc<EnforcerState>);

impl EnforcedGroup {
    /// Must not be called while this process is in the group.
    pub fn set(&self, group: Cgroup) {
        self.0.target().group = Some(group);
    }
}

impl EnforcerState {
    fn target(&self) -> std::sync::MutexGuard<'_, EnforcementTarget> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, lease: &CachedLease, stopped: &Receiver<()>) {
        let mut is_first = true;
        while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if lease.status() == LeaseStatus::Expired {
                // Repeatedly, because a process that is being forked has no PID yet.
                self.kill_all(std::mem::take(&mut is_first));
            }
        }
    }

    /// Kills all processes that exist now.
    fn kill_all(&self, is_first: bool) {
        let target = self.target();
        let is_alive = target.trainer.is_none_or(ProcId::is_alive);
        if is_first {
            let has_ended = target.reported_exit.as_ref().is_some_and(|reported| reported.trainer_exit().is_some());
            self.has_killed.store(is_alive && !has_ended, Ordering::SeqCst);
        }
        if let Some(group) = &target.group {
            // Without a group the following steps must suffice.
            let _ = group.kill();
        }
        if let Some(trainer) = target.trainer.filter(|_| is_alive) {
            // All at once, so that no parent notices its child's death and reports an exit of its own.
            signal_group(trainer.pid, Signal::SIGKILL);
        }
        // This process reaps all orphans of the tree, so they are its descendants, whatever group or session they left.
        for process in descendants(i32::try_from(std::process::id()).unwrap_or_default()) {
            process.signal(Signal::SIGKILL);
        }
    }
}
