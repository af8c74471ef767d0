//! What heartbeats find: whose token it is and what is desired, as long as nothing has changed. A fleet that does what
//! it should costs no look into the database.
//!
//! An entry holds for a version of the worker's topic. Everything that concerns a worker rings that bell, a rotation of
//! its token and a change on another server too; so an entry is as old as a bell that has not rung yet, and no older.

use std::collections::HashMap;
use std::sync::Mutex;

use app::domain::ids::WorkerId;
use app::protocol::topic::Topic;
use app::protocol::worker::Desired;

use crate::hub::Hub;

/// More entries than this belong to no fleet: whoever sends random tokens is not remembered.
const MOST: usize = 100_000;

/// What is known by the digests of tokens.
#[derive(Default)]
pub struct Pulse(Mutex<HashMap<String, Entry>>);

struct Entry {
    worker: WorkerId,
    version: u64,
    desired: Option<Desired>,
}

impl Pulse {
    /// Whose token this is, and what was desired of it, if that still holds.
    pub fn get(&self, hub: &Hub, digest: &str) -> Option<(WorkerId, Option<Desired>)> {
        let mut entries = self.0.lock().expect("no panic while it is held");
        let entry = entries.get(digest)?;
        if hub.version_of(&Topic::Worker(entry.worker.clone())) == entry.version {
            return Some((entry.worker.clone(), entry.desired.clone()));
        }
        entries.remove(digest);
        None
    }

    /// Notes what was read after the topic had this version.
    pub fn put(&self, digest: &str, worker: &WorkerId, version: u64, desired: Option<Desired>) {
        let mut entries = self.0.lock().expect("no panic while it is held");
        if entries.len() < MOST || entries.contains_key(digest) {
            entries.insert(digest.to_owned(), Entry { worker: worker.clone(), version, desired });
        }
    }
}
