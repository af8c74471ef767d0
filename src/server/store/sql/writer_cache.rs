//! The writer's state of workers and live jobs, so that it need not read them for each decision.
//!
//! All its writes of them are applied here too, so that this is the state after the commit. After a rollback, or when another
//! server has written meanwhile, it is cleared, and loaded again when needed. Readers find the state of the last commit in the
//! [committed snapshot](super::super::snapshot).

use std::collections::HashMap;
use std::sync::Arc;

use app::domain::audit::verify::EntryRef;
use async_trait::async_trait;

use super::rows::job::job_from;
use super::rows::worker::worker_from;
use super::statement::sql;
use super::{DbConnection, SqlSession, StoreContext};
use crate::store::fleet_state::{FleetState, StateChange};
use crate::store::read_state::{ReadState, StateReader};
use crate::store::snapshot::CommittedSnapshot;
use crate::store::{Result, StoreError};

#[derive(Default)]
pub struct WriterCache {
    /// The database generation of this state; engines that serve one server have none.
    generation: i64,
    /// The generation of the open transaction, if it is committed.
    next_generation: i64,
    /// The newest entry of the audit chain.
    pub(super) head: Option<EntryRef>,
    /// The newest revisions of configurations that were read.
    newest_revisions: HashMap<String, u32>,
    fleet: Option<FleetState>,
    /// Changes of the open transaction.
    changes: Vec<StateChange>,
}

impl WriterCache {
    /// Begins a transaction with this generation: if the previous one was not this writer's, another server has written since.
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
}

impl<'c> SqlSession<'c> {
    /// Wraps the writer's connection.
    pub fn for_writer(db: DbConnection<'c>, shared: Arc<StoreContext>, mirror: &'c mut WriterCache) -> Self {
        Self { cache: Some(mirror), ..Self::new(db, shared) }
    }

    /// Reads the state in memory: the writer's, or the committed snapshot before the first statement.
    pub(super) fn try_read_state<R>(&self, read: impl FnOnce(&FleetState) -> R) -> Option<R> {
        match &self.cache {
            Some(mirror) => mirror.fleet.as_ref().map(read),
            None if !self.uses_snapshot || self.db.has_begun() => None,
            None => self.shared.snapshot.read(read),
        }
    }

    /// Records a write.
    pub(super) fn record_change(&mut self, change: StateChange) {
        let Some(mirror) = &mut self.cache else { return };
        if let Some(known) = &mut mirror.fleet {
            known.apply(change.clone());
        }
        mirror.changes.push(change);
    }

    /// Fails for a reader.
    pub(super) fn require_writer(&mut self) -> Result<()> {
        self.writes += 1;
        let reads = || StoreError::Unavailable("this snapshot is read-only".to_owned());
        self.cache.as_ref().map(|_| ()).ok_or_else(reads)
    }

    /// The newest revision of a configuration, if cached.
    pub(super) fn cached_revision(&self, name: &str) -> Option<u32> {
        self.cache.as_ref()?.newest_revisions.get(name).copied()
    }

    /// Caches the newest revision of a configuration; `None` if it was deleted.
    pub(super) fn cache_revision(&mut self, name: &str, revision: Option<u32>) {
        let Some(mirror) = &mut self.cache else { return };
        match revision {
            Some(revision) => mirror.newest_revisions.insert(name.to_owned(), revision),
            None => mirror.newest_revisions.remove(name),
        };
    }

    async fn load_state(&mut self) -> Result<FleetState> {
        let workers = self.fetch_valid(sql("SELECT * FROM workers"), worker_from).await?;
        let living =
            sql("SELECT * FROM jobs WHERE state IN ('queued', 'offered', 'starting', 'running', 'cancelling')");
        let jobs = self.fetch_valid(living, job_from).await?;
        let people = self.load_people().await?;
        Ok(FleetState::new(workers, jobs, people))
    }
}

#[async_trait]
impl ReadState for SqlSession<'_> {
    async fn read_state(&mut self, look: &mut StateReader<'_>) -> Result<()> {
        if self.try_read_state(&mut *look).is_none() {
            let known = self.load_state().await?;
            look(&known);
            if let Some(mirror) = &mut self.cache {
                mirror.fleet = Some(known);
            }
        }
        Ok(())
    }
}
