//! Reads the rows that other servers have changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::ids::{JobId, SessionId, TokenId, WorkerId};

use super::access::{session_from, token_from, user_from};
use super::rows::job::job_from;
use super::rows::worker::{last_contact_from, worker_from};
use super::rows::{NamedRow, to_json};
use super::statement::sql;
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::cache::access::AccessChange;
use crate::store::cache::changed_rows::ChangedRows;
use crate::store::cache::state::StateChange;

/// `SELECT` of the rows with these keys.
macro_rules! by_id {
    ($columns:literal, $table:literal) => {
        concat!("SELECT ", $columns, " FROM ", $table, " WHERE id IN (SELECT json_array_elements_text($1::json))")
    };
}

impl SqlSession<'_> {
    /// Reads rows; what has no row was deleted.
    pub(super) async fn read_changed_rows(&mut self, keys: &ChangedRows) -> Result<Vec<StateChange>> {
        let ChangedRows {
            workers,
            contacts,
            jobs,
            ended_jobs,
            users,
            tokens,
            sessions,
            configs: _,
            numbered_configs: _,
            teams,
            share_usage,
            share_rules,
        } = keys;
        // Usage first: the leases in it are counted from its time on.
        let mut changes = self.changed_shares(teams, share_usage, *share_rules).await?;
        changes.extend(self.changed_workers(workers).await?);
        changes.extend(self.changed_contacts(&(contacts - workers)).await?);
        changes.extend(ended_jobs.iter().cloned().map(StateChange::JobRemoved));
        changes.extend(self.changed_jobs(&(jobs - ended_jobs)).await?);
        let mut access: Vec<AccessChange> = self
            .rows_by_id(by_id!("*", "users"), users, user_from)
            .await?
            .into_iter()
            .map(AccessChange::User)
            .collect();
        access.extend(self.changed_tokens(tokens).await?);
        access.extend(self.changed_sessions(sessions).await?);
        changes.extend(access.into_iter().map(StateChange::Access));
        Ok(changes)
    }

    async fn changed_workers(&mut self, ids: &BTreeSet<WorkerId>) -> Result<Vec<StateChange>> {
        let found = self.rows_by_id(by_id!("*", "workers"), ids, worker_from).await?;
        let mut changes = missing(ids, found.iter().map(|stored| &stored.worker.id), StateChange::WorkerRemoved);
        for stored in found {
            let id = stored.worker.id.clone();
            changes.push(StateChange::Worker(Box::new(stored.worker)));
            changes.push(StateChange::Credential(id.clone(), Arc::unwrap_or_clone(stored.credential)));
            changes.extend(stored.last_seen.map(|contact| StateChange::Contact(id, contact)));
        }
        Ok(changes)
    }

    async fn changed_contacts(&mut self, ids: &BTreeSet<WorkerId>) -> Result<Vec<StateChange>> {
        let contact = |row: &SqlRow| {
            let row = NamedRow::new(row, "workers", "id")?;
            Ok((row.worker_id("id")?, last_contact_from(&row)?))
        };
        let found = self.rows_by_id(by_id!("id, last_seen, last_seen_from", "workers"), ids, contact).await?;
        Ok(found.into_iter().filter_map(|(id, contact)| Some(StateChange::Contact(id, contact?))).collect())
    }

    async fn changed_jobs(&mut self, ids: &BTreeSet<JobId>) -> Result<Vec<StateChange>> {
        let found = self.rows_by_id(by_id!("*", "jobs"), ids, job_from).await?;
        let mut changes = missing(ids, found.iter().map(|job| &job.id), StateChange::JobRemoved);
        changes.extend(found.into_iter().map(|job| StateChange::Job(Arc::new(job))));
        Ok(changes)
    }

    async fn changed_tokens(&mut self, ids: &BTreeSet<TokenId>) -> Result<Vec<AccessChange>> {
        let token = |row: &SqlRow| Ok((row.get("digest")?, token_from(row)?));
        let found = self.rows_by_id(by_id!("*", "api_tokens"), ids, token).await?;
        let mut changes = missing(ids, found.iter().map(|(_, token)| &token.id), AccessChange::TokenRemoved);
        changes.extend(found.into_iter().map(|(digest, token)| AccessChange::Token(digest, token)));
        Ok(changes)
    }

    async fn changed_sessions(&mut self, ids: &BTreeSet<SessionId>) -> Result<Vec<AccessChange>> {
        let session = |row: &SqlRow| Ok((row.get("digest")?, session_from(row)?));
        let found = self.rows_by_id(by_id!("*", "sessions"), ids, session).await?;
        let removed = |id| AccessChange::SessionsRemoved(vec![id]);
        let mut changes = missing(ids, found.iter().map(|(_, session)| &session.id), removed);
        changes.extend(found.into_iter().map(|(digest, session)| AccessChange::Session(digest, session)));
        Ok(changes)
    }

    pub(super) async fn rows_by_id<K: serde::Serialize, T: Send>(
        &mut self,
        select: &'static str,
        ids: &BTreeSet<K>,
        parse: impl FnMut(&SqlRow) -> Result<T> + Send,
    ) -> Result<Vec<T>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.fetch_valid(sql(select).bind(to_json(ids)), parse).await
    }
}

/// The change for each key that was not found.
fn missing<'k, K: Ord + Clone + 'k, C>(
    keys: &BTreeSet<K>,
    found: impl Iterator<Item = &'k K>,
    change: impl Fn(K) -> C,
) -> Vec<C> {
    let found: BTreeSet<&K> = found.collect();
    keys.iter().filter(|key| !found.contains(key)).cloned().map(change).collect()
}
