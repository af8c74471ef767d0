//! The trainer's control group. This process is in it when it starts the trainer, and leaves it a moment later.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::lease_enforcer::EnforcedGroup;
use crate::worker::cgroup::{Cgroup, EnteredCgroup};

/// How long after the trainer's start this process leaves the group. It never needs to if the trainer ends sooner.
const LEAVE_DELAY: Duration = Duration::from_millis(20);

pub struct TrainerGroup {
    entered: Arc<EnteredCgroup>,
    /// A message says that the trainer has started. If this is dropped, the thread does not leave the group.
    started: Option<Sender<()>>,
    /// Leaves the group, which blocks. Started before the trainer, which may use up all processes of the group. Returns
    /// whether it has left it.
    leaving: Option<JoinHandle<bool>>,
    has_left: bool,
}

impl TrainerGroup {
    /// Once it is left, the lease enforcer may kill it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(entered: EnteredCgroup, enforced: EnforcedGroup) -> io::Result<Self> {
        let entered = Arc::new(entered);
        let (started, is_started) = channel();
        let group = Arc::clone(&entered);
        let leave = move || {
            let must_leave =
                is_started.recv().is_ok() && is_started.recv_timeout(LEAVE_DELAY) == Err(RecvTimeoutError::Timeout);
            let has_left = must_leave && leave(&group);
            if has_left {
                enforced.set(group.group().clone());
            }
            has_left
        };
        let leaving = Some(std::thread::Builder::new().name("cgroup".to_owned()).spawn(leave)?);
        Ok(Self { entered, started: Some(started), leaving, has_left: false })
    }

    pub fn group(&self) -> &Cgroup {
        self.entered.group()
    }

    /// Leaves it soon.
    pub fn set_started(&self) {
        // The thread waits for it.
        let _ = self.started.as_ref().map(|started| started.send(()));
    }

    /// The group, if it is to be killed: leaves it if it contains other processes.
    pub fn leave_to_kill(&mut self) -> Option<&Cgroup> {
        self.started = None;
        if let Some(leaving) = self.leaving.take() {
            self.has_left = leaving.join().unwrap_or_default();
        }
        if !self.has_left && self.entered.has_others() {
            self.has_left = leave(&self.entered);
        }
        self.has_left.then(|| self.entered.group())
    }
}

fn leave(entered: &EnteredCgroup) -> bool {
    entered.leave().inspect_err(|error| tracing::warn!("cannot leave the trainer's cgroup: {error}")).is_ok()
}
