//! When workers were connected, with how many GPUs, and when they could accept jobs: computed from the audit log.

use std::collections::BTreeMap;

use super::TimeWindow;
use super::spans::TimeSpans;
use crate::domain::ids::WorkerId;
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

/// When a worker was connected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerPresence {
    /// Spans with the number of GPUs.
    pub connected: Vec<((Timestamp, Timestamp), u32)>,
    /// Spans in which it could be offered jobs.
    pub available: Vec<(Timestamp, Timestamp)>,
}

#[derive(Default)]
struct PresenceTracker {
    since: Timestamp,
    connected: bool,
    listening: bool,
    blocked_by: [bool; 3],
    gpus: u32,
    presence: WorkerPresence,
}

impl PresenceTracker {
    /// Records the state until this time.
    fn advance_to(&mut self, at: Timestamp, window: TimeWindow) {
        if let Some(span) = window.clip(self.since, Some(at)).filter(|_| self.connected) {
            self.presence.connected.push((span, self.gpus));
            if self.listening && self.blocked_by == [false; 3] {
                self.presence.available.push(span);
            }
        }
        self.since = at;
    }

    fn apply(&mut self, change: PresenceChange) {
        let [drains, retired, host_unhealthy] = &mut self.blocked_by;
        match change {
            PresenceChange::Registered { gpus, unhealthy } => {
                (self.connected, self.listening, self.gpus, *host_unhealthy) = (true, false, gpus, unhealthy);
            }
            PresenceChange::Online => (self.connected, self.listening) = (true, true),
            PresenceChange::Connecting => self.listening = false,
            PresenceChange::Offline => (self.connected, self.listening) = (false, false),
            PresenceChange::Drained => *drains = true,
            PresenceChange::Resumed => *drains = false,
            PresenceChange::Retired => *retired = true,
            PresenceChange::HostHealth { unhealthy } => *host_unhealthy = unhealthy,
        }
    }
}

/// Returns when each worker was connected within the window; changes must be in the order of time.
pub fn worker_presence(
    changes: impl IntoIterator<Item = (Timestamp, WorkerId, PresenceChange)>,
    window: TimeWindow,
) -> BTreeMap<WorkerId, WorkerPresence> {
    let mut workers = BTreeMap::<WorkerId, PresenceTracker>::new();
    for (at, id, change) in changes {
        let worker = workers.entry(id).or_default();
        worker.advance_to(at, window);
        worker.apply(change);
    }
    let finish = |(id, mut worker): (WorkerId, PresenceTracker)| {
        worker.advance_to(window.until, window);
        (id, worker.presence)
    };
    workers.into_iter().map(finish).collect()
}

/// Returns when any worker could have accepted a job and had none; `busy` are the spans in which workers had jobs.
pub fn idle_spans(presence: &BTreeMap<WorkerId, WorkerPresence>, busy: &BTreeMap<WorkerId, TimeSpans>) -> TimeSpans {
    let none = TimeSpans::default();
    let worker_idle = |(id, presence): (&WorkerId, &WorkerPresence)| {
        let available: TimeSpans = presence.available.iter().copied().collect();
        available.difference(busy.get(id).unwrap_or(&none))
    };
    presence.iter().flat_map(|worker| worker_idle(worker).iter().collect::<Vec<_>>()).collect()
}
