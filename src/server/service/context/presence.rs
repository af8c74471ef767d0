//! Last contacts of workers. Kept in memory and written in batches, so that a heartbeat costs no commit.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;

use crate::clock::MAX_SLEW;
use crate::service::ServiceContext;
use crate::store::workers::{LastContact, StoredWorker};

#[derive(Default)]
pub struct Presence(Mutex<PresenceState>);

#[derive(Default)]
struct PresenceState {
    contacts: HashMap<WorkerId, LastContact>,
    unwritten: HashSet<WorkerId>,
}

impl Presence {
    /// Records a contact; an unknown address does not replace a known one. Returns the previous contact since this
    /// server started.
    pub fn record(&self, worker: &WorkerId, contact: LastContact) -> Option<Timestamp> {
        let mut state = self.0.lock().expect("no panic while it is held");
        let from = state.contacts.get(worker).and_then(|before| before.from);
        state.unwritten.insert(worker.clone());
        let contact = LastContact { from: contact.from.or(from), ..contact };
        state.contacts.insert(worker.clone(), contact).map(|before| before.at)
    }

    /// The last contact since this server started.
    pub fn last_seen(&self, worker: &WorkerId) -> Option<LastContact> {
        self.0.lock().expect("no panic while it is held").contacts.get(worker).copied()
    }

    /// Returns the contacts to write, and marks them as written.
    pub fn take_unwritten(&self) -> Vec<(WorkerId, LastContact)> {
        let mut state = self.0.lock().expect("no panic while it is held");
        let unwritten = std::mem::take(&mut state.unwritten);
        unwritten.into_iter().filter_map(|id| state.contacts.get(&id).map(|contact| (id.clone(), *contact))).collect()
    }

    /// Forgets a deleted worker.
    pub fn forget(&self, worker: &WorkerId) {
        let mut state = self.0.lock().expect("no panic while it is held");
        state.contacts.remove(worker);
        state.unwritten.remove(worker);
    }
}

/// The last contact of a worker, from memory or from the database.
pub fn last_seen(context: &ServiceContext, stored: &StoredWorker) -> Option<Timestamp> {
    last_contact(context, stored).map(|contact| contact.at)
}

/// The last contact, with its address.
pub fn last_contact(context: &ServiceContext, stored: &StoredWorker) -> Option<LastContact> {
    Some(plausible_contact(context, context.presence.last_seen(&stored.worker.id).max(stored.last_seen)?))
}

/// The last contact as last written, a few seconds ago: without a look-up, for passes over all workers.
pub fn written_contact(context: &ServiceContext, stored: &StoredWorker) -> Option<Timestamp> {
    Some(plausible_contact(context, stored.last_seen?).at)
}

fn plausible_contact(context: &ServiceContext, contact: LastContact) -> LastContact {
    let now = context.now();
    // Another server's clock may be slightly ahead of this one's; or this one was set back by more than it could follow
    // since.
    let at = if contact.at - now > MAX_SLEW { context.clock.continuous_since() } else { contact.at.min(now) };
    LastContact { at, ..contact }
}
