//! What this server knows of its leadership.

use std::sync::Mutex;

use app::domain::time::Timestamp;

/// Since when this server is leader, and since when the database has not answered.
#[derive(Default)]
pub struct Leadership {
    since: Mutex<Option<Timestamp>>,
    unavailable_since: Mutex<Option<Timestamp>>,
}

impl Leadership {
    /// Since when this server is leader.
    pub fn held_since(&self) -> Option<Timestamp> {
        *self.since.lock().expect("no panic while it is held")
    }

    /// Since when the database has not answered.
    pub fn database_unavailable_since(&self) -> Option<Timestamp> {
        *self.unavailable_since.lock().expect("no panic while it is held")
    }

    pub(in crate::service) fn record_database(&self, is_available: bool, now: Timestamp) {
        let mut since = self.unavailable_since.lock().expect("no panic while it is held");
        *since = if is_available { None } else { since.or(Some(now)) };
    }

    pub(in crate::service) fn set_leads(&self, leads: bool, now: Timestamp) {
        let mut since = self.since.lock().expect("no panic while it is held");
        if leads != since.is_some() {
            tracing::info!(leads, "leadership changed");
            *since = leads.then_some(now);
        }
    }
}
