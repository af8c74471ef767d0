//! The writer's state of workers and live jobs, so that it need not read them for each decision.
//!
//! All its writes of them are applied here too, so that this is the state after the commit. After a rollback, or when
//! another server has written meanwhile, it is cleared, and loaded again when needed. Readers find the state of the
//! last commit in the
//! [committed snapshot](super::snapshot).

use std::collections::HashMap;

use app::domain::audit::verify::EntryRef;

use super::snapshot::CommittedSnapshot;
use super::state::{FleetState, StateChange};

#[derive(Default)]
pub struct WriterCache {
    /// The database generation of this state; engines that serve one server have none.
    generation: i64,
    /// The generation of the open transaction, if it is committed.
    next_generation: i64,
    /// The newest entry of the audit chain.
    pub head: Option<EntryRef>,
    /// The newest revisions of configurations that were read.
    newest_revisions: HashMap<String, u32>,
    fleet: Option<FleetState>,
    /// Changes of the open transaction.
    changes: Vec<StateChange>,
}

impl WriterCache {
    /// Begins a transaction with this generation: if the previous one was not this writer's, another server has written
    /// since.
    pub fn begin_generation(&mut self, generation: i64, snapshot: &CommittedSnapshot) {
        if generation != self.generation + 1 {
            self.clear();
            snapshot.invalidate();
        }
        self.next_generation = generation;
    }

    pub fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    /// Publishes what was committed.
    pub fn publish(&mut self, snapshot: &CommittedSnapshot) {
        self.generation = self.next_generation;
        snapshot.apply(self.generation, std::mem::take(&mut self.changes), self.fleet.as_ref());
    }

    /// The generation of the transaction, and whether it differs from the previous one.
    pub fn pending_generation(&self) -> (i64, bool) {
        (self.next_generation, !self.changes.is_empty())
    }

    /// The state, if it is loaded.
    pub fn state(&self) -> Option<&FleetState> {
        self.fleet.as_ref()
    }

    /// Sets the state that was loaded.
    pub fn set_state(&mut self, state: FleetState) {
        self.fleet = Some(state);
    }

    /// Records a write of the open transaction.
    pub fn record_change(&mut self, change: StateChange) {
        if let Some(fleet) = &mut self.fleet {
            fleet.apply(change.clone());
        }
        self.changes.push(change);
    }

    /// The newest revision of a configuration, if cached.
    pub fn revision(&self, name: &str) -> Option<u32> {
        self.newest_revisions.get(name).copied()
    }

    /// Caches the newest revision of a configuration; `None` if it was deleted.
    pub fn set_revision(&mut self, name: &str, revision: Option<u32>) {
        match revision {
            Some(revision) => self.newest_revisions.insert(name.to_owned(), revision),
            None => self.newest_revisions.remove(name),
        };
    }
}
