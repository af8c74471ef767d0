//! Ends an exclusive trainer with its lease when everything else in this process stands still: on a thread that touches no
//! file of the work directory, which may be on a disk that hangs. The supervisor's log is one of them, so it says nothing.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::Signal;

use super::cgroup::Cgroup;
use super::ending::Reported;
use super::lease::{Known, LOOK, Verdict};
use crate::process::{ProcId, descendants, signal_group};

/// Who is to be ended, as far as it has begun.
#[derive(Default)]
struct Target {
    trainer: Option<ProcId>,
    group: Option<Cgroup>,
    /// Tells the trainer's end, where it is not the end of `trainer`.
    reported: Option<Reported>,
}

#[derive(Default)]
struct Shared {
    target: Mutex<Target>,
    /// The trainer lived when it was ended.
    has_ended_it: AtomicBool,
}

/// See the module.
pub struct Guard {
    shared: Arc<Shared>,
    _looks: Option<Sender<()>>,
}

impl Guard {
    /// For a job that is not exclusive: it may outlive its lease.
    pub fn none() -> Self {
        Self { shared: Arc::default(), _looks: None }
    }

    /// Begins, before the trainer does.
    pub fn of(lease: &Known) -> io::Result<Self> {
        let (looks, ended) = channel();
        let (lease, shared) = (lease.clone(), Arc::<Shared>::default());
        let guard = Self { shared: Arc::clone(&shared), _looks: Some(looks) };
        std::thread::Builder::new().name("guard".to_owned()).spawn(move || shared.look_on(&lease, &ended))?;
        Ok(guard)
    }

    /// This is the trainer, or the init process above it which reports its end, and all of its tree is in this group, if there
    /// is one. Not while this process is in it too.
    pub fn watch(&self, trainer: ProcId, group: Option<Cgroup>, reported: Option<Reported>) {
        *self.shared.target() = Target { trainer: Some(trainer), group, reported };
    }

    /// Once nothing is left to guard. Whether it was this that ended the trainer.
    pub fn end(self) -> bool {
        self.shared.has_ended_it.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn target(&self) -> std::sync::MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_on(&self, lease: &Known, ended: &Receiver<()>) {
        let mut is_first = true;
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if lease.verdict() == Verdict::Over {
                // Again and again, as what is being born has no number yet.
                self.strike(std::mem::take(&mut is_first));
            }
        }
    }

    /// Kills all that is there now.
    fn strike(&self, is_first: bool) {
        let target = self.target();
        let lives = target.trainer.is_none_or(ProcId::is_alive);
        if is_first {
            let has_ended = target.reported.as_ref().is_some_and(|reported| reported.ended().is_some());
            self.has_ended_it.store(lives && !has_ended, Ordering::SeqCst);
        }
        if let Some(group) = &target.group {
            // Where it cannot be, the rest has to do.
            let _ = group.kill();
        }
        if let Some(trainer) = target.trainer.filter(|_| lives) {
            // At once, so that no parent sees its child die and makes an end of its own of that.
            signal_group(trainer.pid, Signal::SIGKILL);
        }
        // This process is the reaper of all orphans of the tree, so they are below it, whatever they have left.
        for process in descendants(i32::try_from(std::process::id()).unwrap_or_default()) {
            process.signal(Signal::SIGKILL);
        }
    }
}
