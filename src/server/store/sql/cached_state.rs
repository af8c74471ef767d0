//! The live state for statements: from the writer's cache or the committed snapshot, else from the database.

use std::sync::Arc;

use async_trait::async_trait;

use super::rows::job::{job_from, live_states};
use super::rows::worker::worker_from;
use super::statement::sql;
use super::{DbConnection, SqlSession, StoreContext};
use crate::store::cache::read::{ReadState, StateReader};
use crate::store::cache::state::{FleetState, StateChange};
use crate::store::cache::writer::WriterCache;
use crate::store::{Result, StoreError};

impl<'c> SqlSession<'c> {
    /// Wraps the writer's connection.
    pub fn for_writer(db: DbConnection<'c>, shared: Arc<StoreContext>, cache: &'c mut WriterCache) -> Self {
        Self { cache: Some(cache), ..Self::new(db, shared) }
    }

    /// Reads the state in memory: the writer's, or the committed snapshot before the first statement.
    pub(super) fn try_read_state<R>(&self, read: impl FnOnce(&FleetState) -> R) -> Option<R> {
        match &self.cache {
            Some(cache) => cache.state().map(read),
            None if !self.uses_snapshot || self.db.has_begun() => None,
            None => self.shared.snapshot.read(read),
        }
    }

    /// Records a write.
    pub(super) fn record_change(&mut self, change: StateChange) {
        if let Some(cache) = &mut self.cache {
            cache.record_change(change);
        }
    }

    /// Fails for a reader.
    pub(super) fn require_writer(&mut self) -> Result<()> {
        self.writes += 1;
        let read_only = || StoreError::Unavailable("this snapshot is read-only".to_owned());
        self.cache.as_ref().map(|_| ()).ok_or_else(read_only)
    }

    /// The newest revision of a configuration, if cached.
    pub(super) fn cached_revision(&self, name: &str) -> Option<u32> {
        self.cache.as_ref()?.revision(name)
    }

    /// Caches the newest revision of a configuration.
    pub(super) fn cache_revision(&mut self, name: &str, revision: u32) {
        if let Some(cache) = &mut self.cache {
            cache.set_revision(name, revision);
        }
    }

    /// Records a write of a configuration; its newest revision is `None` if it was deleted.
    pub(super) fn record_revision(&mut self, name: &str, revision: Option<u32>) {
        if let Some(cache) = &mut self.cache {
            cache.record_revision(name, revision);
        }
    }

    async fn load_state(&mut self) -> Result<FleetState> {
        let workers = self.fetch_valid(sql("SELECT * FROM workers"), worker_from).await?;
        let select = sql(concat!("SELECT * FROM jobs WHERE state IN ", live_states!()));
        let jobs = self.fetch_valid(select, job_from).await?;
        let access = self.load_access().await?;
        let shares = self.load_shares().await?;
        Ok(FleetState::new(workers, jobs, access, shares))
    }
}

#[async_trait]
impl ReadState for SqlSession<'_> {
    async fn read_state(&mut self, read: &mut StateReader<'_>) -> Result<()> {
        if self.try_read_state(&mut *read).is_some() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        if self.cache.as_mut().is_some_and(|cache| cache.copy_state(&shared.snapshot)) {
            self.try_read_state(read);
            return Ok(());
        }
        let state = self.load_state().await?;
        read(&state);
        if let Some(cache) = &mut self.cache {
            cache.set_state(state);
        }
        Ok(())
    }
}
