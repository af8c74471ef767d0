//! The writer's state of workers and live jobs, so that it need not read them for each decision.
//!
//! All its writes of them are applied here too, so that this is the state after the commit. What other servers have
//! written is applied at the beginning of each group. After a rollback the state is dropped, and taken from the
//! [committed snapshot](super::snapshot) or the database when it is needed again. Readers find the state of the last
//! commit in that snapshot.

use std::collections::HashMap;

use app::domain::audit::verify::EntryRef;

use super::changed_rows::ChangedRows;
use super::snapshot::{CommittedSnapshot, ExternalChanges};
use super::state::{FleetState, StateChange};

#[derive(Default)]
pub struct WriterCache {
    /// The generation of the database that this state is of, without the open transaction.
    generation: i64,
    /// The generation before `changes`.
    changed_since: i64,
    /// Whether the open transaction begins a new generation.
    begins_generation: bool,
    /// The newest entry of the audit chain.
    pub head: Option<EntryRef>,
    /// The newest revisions of configurations that were read.
    newest_revisions: HashMap<String, u32>,
    /// The highest job numbers of configurations that were read.
    last_job_numbers: HashMap<String, u32>,
    fleet: Option<FleetState>,
    /// Changes that are not published yet.
    changes: Vec<StateChange>,
    /// The cached rows that the open transaction has changed.
    changed_rows: ChangedRows,
}

impl WriterCache {
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Applies published changes by other servers at the beginning of a transaction, if it has all before them.
    pub fn catch_up(&mut self, external: ExternalChanges) {
        if let Some(fleet) = &mut self.fleet
            && external.since <= self.generation
            && external.generation > self.generation
        {
            self.newest_revisions.retain(|name, _| !external.configs.contains(name));
            self.last_job_numbers.retain(|config, _| !external.numbered_configs.contains(config));
            external.changes.into_iter().for_each(|change| fleet.apply(change));
            self.generation = external.generation;
            self.changed_since = external.generation;
        }
    }

    /// Drops the state at the beginning of a transaction, because it is not known what other servers have committed
    /// until this generation.
    pub fn restart_at(&mut self, generation: i64) {
        *self = Self { generation, changed_since: generation, head: self.head.take(), ..Self::default() };
    }

    /// Drops the state after a rollback.
    pub fn clear(&mut self) {
        *self = Self { generation: self.generation, changed_since: self.generation, ..Self::default() };
    }

    /// Publishes what was committed.
    pub fn publish(&mut self, snapshot: &CommittedSnapshot) {
        self.generation += i64::from(std::mem::take(&mut self.begins_generation));
        let changes = std::mem::take(&mut self.changes);
        snapshot.publish(self.changed_since, self.generation, changes, self.fleet.as_ref());
        self.changed_since = self.generation;
    }

    /// Whether the open transaction has changed cached rows.
    pub fn has_changes(&self) -> bool {
        self.changed_rows != ChangedRows::default()
    }

    /// Begins a generation with the open transaction, which has written something; returns its number and the rows that
    /// it has changed.
    pub fn begin_generation(&mut self) -> (i64, ChangedRows) {
        self.begins_generation = true;
        (self.generation + 1, std::mem::take(&mut self.changed_rows))
    }

    /// The state, if it is loaded.
    pub fn state(&self) -> Option<&FleetState> {
        self.fleet.as_ref()
    }

    /// Sets the state that was loaded inside the open transaction.
    pub fn set_state(&mut self, state: FleetState) {
        self.fleet = Some(state);
    }

    /// Takes over the committed state, and applies the changes since; returns whether there is one.
    pub fn copy_state(&mut self, snapshot: &CommittedSnapshot) -> bool {
        let Some(mut fleet) = snapshot.copy_at(self.changed_since) else { return false };
        self.changes.iter().cloned().for_each(|change| fleet.apply(change));
        self.fleet = Some(fleet);
        true
    }

    /// Records a write of the open transaction.
    pub fn record_change(&mut self, change: StateChange) {
        self.changed_rows.record(&change);
        if let Some(fleet) = &mut self.fleet {
            fleet.apply(change.clone());
        }
        self.changes.push(change);
    }

    /// The highest job number of a configuration, if cached.
    pub fn last_job_number(&self, config: &str) -> Option<u32> {
        self.last_job_numbers.get(config).copied()
    }

    /// Records that a job with this number was created.
    pub fn record_job_number(&mut self, config: &str, number: u32) {
        self.changed_rows.numbered_configs.insert(config.to_owned());
        self.last_job_numbers.insert(config.to_owned(), number);
    }

    /// The newest revision of a configuration, if cached.
    pub fn revision(&self, name: &str) -> Option<u32> {
        self.newest_revisions.get(name).copied()
    }

    /// Caches the newest revision of a configuration.
    pub fn set_revision(&mut self, name: &str, revision: u32) {
        self.newest_revisions.insert(name.to_owned(), revision);
    }

    /// Records a write of a configuration; its newest revision is `None` if it was deleted.
    pub fn record_revision(&mut self, name: &str, revision: Option<u32>) {
        self.changed_rows.configs.insert(name.to_owned());
        match revision {
            Some(revision) => self.set_revision(name, revision),
            None => drop(self.newest_revisions.remove(name)),
        }
    }
}
