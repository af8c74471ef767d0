//! What the writer knows of workers and of jobs that live, so that it need not read them for each decision.
//!
//! Whatever it writes of them goes through here too, so that this says what the database will say after the commit.
//! After a rollback, or when another server has written meanwhile, it is emptied, and filled when it is next asked. Who
//! only reads finds the same, as of the last commit, on the board.

use std::collections::HashMap;
use std::sync::Arc;

use app::domain::audit::verify::Mark;
use async_trait::async_trait;

use super::rows::job::job;
use super::rows::worker::worker;
use super::statement::sql;
use super::{Db, Session, Shared};
use crate::store::board::Board;
use crate::store::known::{Change, Known};
use crate::store::look::{Look, Looking};
use crate::store::{Result, StoreError};

/// See the module.
#[derive(Default)]
pub struct Mirror {
    /// The database's generation that this is of; engines that serve one server have none.
    generation: i64,
    /// The one that the open transaction makes, if it is committed.
    making: i64,
    /// The newest entry of the audit chain.
    pub(super) head: Option<Mark>,
    /// The newest revisions of configurations that were asked for.
    newest: HashMap<String, u32>,
    known: Option<Known>,
    /// What the transaction has written.
    changes: Vec<Change>,
}

impl Mirror {
    /// The transaction that has begun makes this generation: if the one before was not this writer's, another server
    /// has written since.
    pub fn is_of(&mut self, generation: i64, board: &Board) {
        if generation != self.generation + 1 {
            self.empty();
            board.wipe();
        }
        self.making = generation;
    }

    /// Knows nothing any more.
    pub fn empty(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    /// Puts up what was committed.
    pub fn publish(&mut self, board: &Board) {
        self.generation = self.making;
        board.follow(self.generation, std::mem::take(&mut self.changes), self.known.as_ref());
    }

    /// The generation that the transaction makes, and whether it differs from the one before.
    pub fn made(&self) -> (i64, bool) {
        (self.making, !self.changes.is_empty())
    }
}

impl<'c> Session<'c> {
    /// Wraps the connection of the one who writes.
    pub fn writing(db: Db<'c>, shared: Arc<Shared>, mirror: &'c mut Mirror) -> Self {
        Self { mirror: Some(mirror), ..Self::new(db, shared) }
    }

    /// Looks into memory: the writer's, or the board as long as the database was not asked yet.
    pub(super) fn glance<R>(&self, look: impl FnOnce(&Known) -> R) -> Option<R> {
        match &self.mirror {
            Some(mirror) => mirror.known.as_ref().map(look),
            None if !self.remembers || self.db.has_begun() => None,
            None => self.shared.board.glance(look),
        }
    }

    /// Something was written.
    pub(super) fn note(&mut self, change: Change) {
        let Some(mirror) = &mut self.mirror else { return };
        if let Some(known) = &mut mirror.known {
            known.apply(change.clone());
        }
        mirror.changes.push(change);
    }

    /// Refuses who came to read.
    pub(super) fn may_write(&mut self) -> Result<()> {
        self.writes += 1;
        let reads = || StoreError::Unavailable("this view is for reading".to_owned());
        self.mirror.as_ref().map(|_| ()).ok_or_else(reads)
    }

    /// The newest revision of a configuration, if it is known.
    pub(super) fn known_revision(&self, name: &str) -> Option<u32> {
        self.mirror.as_ref()?.newest.get(name).copied()
    }

    /// A configuration has a newest revision now, or is gone.
    pub(super) fn note_revision(&mut self, name: &str, revision: Option<u32>) {
        let Some(mirror) = &mut self.mirror else { return };
        match revision {
            Some(revision) => mirror.newest.insert(name.to_owned(), revision),
            None => mirror.newest.remove(name),
        };
    }

    async fn load(&mut self) -> Result<Known> {
        let workers = self.whole(sql("SELECT * FROM workers"), worker).await?;
        let living =
            sql("SELECT * FROM jobs WHERE state IN ('queued', 'offered', 'starting', 'running', 'cancelling')");
        let jobs = self.whole(living, job).await?;
        let people = self.load_people().await?;
        Ok(Known::new(workers, jobs, people))
    }
}

#[async_trait]
impl Looking for Session<'_> {
    async fn look(&mut self, look: &mut Look<'_>) -> Result<()> {
        if self.glance(&mut *look).is_none() {
            let known = self.load().await?;
            look(&known);
            if let Some(mirror) = &mut self.mirror {
                mirror.known = Some(known);
            }
        }
        Ok(())
    }
}
