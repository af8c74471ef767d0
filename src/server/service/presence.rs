//! When workers were last heard of. Kept in memory and written in batches, so that a heartbeat costs no commit.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;

use super::Core;
use crate::clock::NEVER_RIGHT;
use crate::store::workers::{Seen, StoredWorker};

/// The newest sign of life of each worker.
#[derive(Default)]
pub struct Presence(Mutex<State>);

#[derive(Default)]
struct State {
    seen: HashMap<WorkerId, Seen>,
    unwritten: HashSet<WorkerId>,
}

impl Presence {
    /// A worker was heard of; where it is not known from where, it is where it was. Returns when it was heard of before,
    /// if it was since this server started.
    pub fn note(&self, worker: &WorkerId, seen: Seen) -> Option<Timestamp> {
        let mut state = self.0.lock().expect("no panic while it is held");
        let from = state.seen.get(worker).and_then(|before| before.from);
        state.unwritten.insert(worker.clone());
        let seen = Seen { from: seen.from.or(from), ..seen };
        state.seen.insert(worker.clone(), seen).map(|before| before.at)
    }

    /// When it was, if it was since this server started.
    pub fn last_seen(&self, worker: &WorkerId) -> Option<Seen> {
        self.0.lock().expect("no panic while it is held").seen.get(worker).copied()
    }

    /// What is to be written, and counts as written now.
    pub fn take_unwritten(&self) -> Vec<(WorkerId, Seen)> {
        let mut state = self.0.lock().expect("no panic while it is held");
        let unwritten = std::mem::take(&mut state.unwritten);
        unwritten.into_iter().filter_map(|id| state.seen.get(&id).map(|seen| (id.clone(), *seen))).collect()
    }

    /// Forgets a worker that was removed.
    pub fn forget(&self, worker: &WorkerId) {
        let mut state = self.0.lock().expect("no panic while it is held");
        state.seen.remove(worker);
        state.unwritten.remove(worker);
    }
}

/// When a worker was last heard of, by memory or by the database.
pub fn last_seen(core: &Core, stored: &StoredWorker) -> Option<Timestamp> {
    last_sight(core, stored).map(|seen| seen.at)
}

/// The same, with the address from which.
pub fn last_sight(core: &Core, stored: &StoredWorker) -> Option<Seen> {
    let seen = core.presence.last_seen(&stored.worker.id).max(stored.last_seen)?;
    let now = core.now();
    // Another server's clock is a little ahead of ours; or ours was set back by more than it could follow since.
    let at = if seen.at - now > NEVER_RIGHT { core.clock.unbroken_since() } else { seen.at.min(now) };
    Some(Seen { at, ..seen })
}
