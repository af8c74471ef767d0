//! The capacity of the fleet over time, computed from the audit log and the attempts.

use super::TimeWindow;
use super::spans::TimeSpans;
use crate::domain::time::Timestamp;

/// A change of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresenceChange {
    /// Its agent registered.
    Registered {
        /// Number of GPUs.
        gpus: u32,
        /// Whether the host is unhealthy.
        unhealthy: bool,
    },
    /// Its agent is connected.
    Online,
    /// Its stream ended; it still counts as connected.
    Connecting,
    /// It went offline, or was removed.
    Offline,
    /// A user drained it.
    Drained,
    /// A user resumed it.
    Resumed,
    /// It accepts no other job.
    Retired,
    /// The health of its host changed.
    HostHealth {
        /// Whether the host is unhealthy.
        unhealthy: bool,
    },
}

/// The capacity of the fleet in a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetCapacity {
    /// Disjoint spans in order, with the number of GPUs of connected workers.
    pub connected: Vec<((Timestamp, Timestamp), u64)>,
    /// When any worker could have accepted a job and had none.
    pub idle: TimeSpans,
}

/// A worker, by its index among the workers of a computation.
pub type WorkerIndex = u32;

/// A change of a worker's presence or jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityChange {
    /// Of its presence.
    Presence(PresenceChange),
    /// A job was offered to it.
    JobAdded,
    /// An attempt on it ended.
    JobRemoved,
}

/// Returns the capacity of the fleet in the window. Changes must be in the order of time, and include those before the
/// window.
pub fn fleet_capacity(
    changes: impl IntoIterator<Item = (Timestamp, WorkerIndex, CapacityChange)>,
    window: TimeWindow,
) -> FleetCapacity {
    let mut tracker = CapacityTracker { since: window.since, ..CapacityTracker::default() };
    for (at, worker, change) in changes {
        tracker.advance_to(at.min(window.until));
        tracker.apply(worker as usize, change);
    }
    tracker.advance_to(window.until);
    FleetCapacity { connected: tracker.connected, idle: tracker.idle.into_iter().collect() }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Connection {
    #[default]
    None,
    WithoutStream,
    WithStream,
}

#[derive(Clone, Copy, Default)]
struct WorkerPresence {
    connection: Connection,
    drains: bool,
    retired: bool,
    host_unhealthy: bool,
    gpus: u32,
    jobs: u32,
}

impl WorkerPresence {
    fn apply(&mut self, change: CapacityChange) {
        match change {
            CapacityChange::JobAdded => self.jobs += 1,
            CapacityChange::JobRemoved => self.jobs = self.jobs.saturating_sub(1),
            CapacityChange::Presence(change) => match change {
                PresenceChange::Registered { gpus, unhealthy } => {
                    *self = Self { connection: Connection::WithoutStream, gpus, host_unhealthy: unhealthy, ..*self };
                }
                PresenceChange::Online => self.connection = Connection::WithStream,
                PresenceChange::Connecting if self.connection == Connection::None => {}
                PresenceChange::Connecting => self.connection = Connection::WithoutStream,
                PresenceChange::Offline => self.connection = Connection::None,
                PresenceChange::Drained => self.drains = true,
                PresenceChange::Resumed => self.drains = false,
                PresenceChange::Retired => self.retired = true,
                PresenceChange::HostHealth { unhealthy } => self.host_unhealthy = unhealthy,
            },
        }
    }

    fn connected_gpus(&self) -> u64 {
        if self.connection == Connection::None { 0 } else { self.gpus.into() }
    }

    fn is_idle(&self) -> bool {
        let is_blocked = self.drains || self.retired || self.host_unhealthy;
        self.connection == Connection::WithStream && !is_blocked && self.jobs == 0
    }
}

#[derive(Default)]
struct CapacityTracker {
    since: Timestamp,
    workers: Vec<WorkerPresence>,
    gpus: u64,
    idle_workers: usize,
    connected: Vec<((Timestamp, Timestamp), u64)>,
    idle: Vec<(Timestamp, Timestamp)>,
}

impl CapacityTracker {
    /// Records the state until this time.
    fn advance_to(&mut self, at: Timestamp) {
        if at <= self.since {
            return;
        }
        let span = (self.since, at);
        if self.gpus > 0 {
            self.connected.push((span, self.gpus));
        }
        if self.idle_workers > 0 {
            self.idle.push(span);
        }
        self.since = at;
    }

    fn apply(&mut self, index: usize, change: CapacityChange) {
        if self.workers.len() <= index {
            self.workers.resize(index + 1, WorkerPresence::default());
        }
        let worker = &mut self.workers[index];
        self.gpus -= worker.connected_gpus();
        self.idle_workers -= usize::from(worker.is_idle());
        worker.apply(change);
        self.gpus += worker.connected_gpus();
        self.idle_workers += usize::from(worker.is_idle());
    }
}
