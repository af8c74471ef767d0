//! The beginning and the end of a group of writes.
//!
//! On a database of several servers a group holds the lock of one row, which has the number of the last generation:
//! each group that writes something begins the next one, and records which cached rows it has changed. A server that
//! finds generations of others reads those rows again, instead of everything.

use super::SqlSession;
use super::rows::to_json;
use super::statement::sql;
use crate::store::cache::changed_rows::ChangedRows;
use crate::store::cache::snapshot::ExternalChanges;
use crate::store::commit_group::CommitGroup;
use crate::store::system::schema::DatabaseSchema;
use crate::store::{Result, StoreError};

/// The channel for notifications between servers.
pub const CHANNEL: &str = "simpletuner";
/// PostgreSQL's limit for one notification, in bytes, with a margin.
const MAX_PAYLOAD_BYTES: usize = 7_900;
pub const NEWEST_GENERATION: &str = "SELECT number FROM generation";
/// Takes the lock that serializes groups.
const LOCK_GENERATION: &str = "SELECT number, oldest_schema FROM generation FOR UPDATE";
/// Begins a generation, and notifies other servers.
const END_GROUP: &str = "WITH next AS (UPDATE generation SET number = $1),
        recorded AS (INSERT INTO generation_changes (generation, at, changed_rows)
            VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2))
    SELECT pg_notify($3, $4)::text AS notified";
/// Removes old records. A server that is further behind reads everything.
const SWEEP: &str = "DELETE FROM generation_changes
    WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 60000";
/// How many generations there are between two sweeps.
const SWEEP_INTERVAL: i64 = 64;

impl CommitGroup for SqlSession<'_> {
    fn request_planning(&mut self) {
        self.planning_requested = true;
    }

    fn notify(&mut self, topics: Vec<String>) {
        self.topics.extend(topics);
    }
}

impl SqlSession<'_> {
    /// Waits for the groups of other servers, and applies what they have changed.
    pub(super) async fn begin_group(&mut self) -> Result<()> {
        if self.is_single_server() {
            return Ok(());
        }
        let current = self.lock_generation().await?;
        let (cached, is_loaded) = self.apply_external();
        if cached == current {
            return Ok(());
        }
        if cached > current {
            // The database was restored from a backup.
            self.shared.snapshot.invalidate();
        }
        if is_loaded && let Some(external) = self.read_changes(cached, current).await? {
            self.shared.snapshot.publish_external(external);
            self.apply_external();
        } else if let Some(cache) = &mut self.cache {
            cache.restart_at(current);
        }
        Ok(())
    }

    /// Applies published changes by other servers to the writer's state; returns its generation, and whether it is
    /// loaded.
    fn apply_external(&mut self) -> (i64, bool) {
        let Some(cache) = &mut self.cache else { return (0, false) };
        self.shared.snapshot.take_external().into_iter().for_each(|external| cache.catch_up(external));
        (cache.generation(), cache.state().is_some())
    }

    /// Notifies other servers when this transaction is committed; returns the topics to notify here.
    pub(super) async fn end_group(&mut self) -> Result<Vec<String>> {
        let topics: Vec<String> = std::mem::take(&mut self.topics).into_iter().collect();
        let Some(cache) = &mut self.cache else { return Ok(topics) };
        if self.writes == 0 && topics.is_empty() && !cache.has_changes() {
            return Ok(topics);
        }
        let (generation, changed_rows) = cache.begin_generation();
        if !self.is_single_server() {
            let sender = format!("{} {generation}", self.shared.chain);
            let payload = format!("{sender} {}", topics.join(" "));
            let payload = if payload.len() > MAX_PAYLOAD_BYTES { format!("{sender} *") } else { payload };
            let end = sql(END_GROUP).bind(generation).bind(to_json(&changed_rows));
            self.fetch_first(end.bind(CHANNEL).bind(payload)).await?;
            if generation % SWEEP_INTERVAL == 0 {
                self.execute(sql(SWEEP)).await?;
            }
        }
        Ok(topics)
    }

    /// Reads what has been committed after a generation; `None` if it is not known.
    pub async fn external_changes(&mut self, since: i64) -> Result<Option<ExternalChanges>> {
        let row = self.fetch_first(sql(NEWEST_GENERATION)).await?;
        let generation = row.map_or(Ok(0), |row| row.get("number"))?;
        self.read_changes(since, generation).await
    }

    /// Takes the lock, if this program still works with the database: a newer one may have migrated it meanwhile.
    async fn lock_generation(&mut self) -> Result<i64> {
        let Some(row) = self.fetch_first(sql(LOCK_GENERATION)).await? else { return Ok(0) };
        let oldest_compatible = row.get("oldest_schema")?;
        let schema = DatabaseSchema { version: oldest_compatible, oldest_compatible };
        let checked = schema.check_compatible(self.shared.known_schema);
        checked.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        row.get("number")
    }

    /// Reads the rows that were changed by generations; `None` if it is not known which.
    async fn read_changes(&mut self, since: i64, until: i64) -> Result<Option<ExternalChanges>> {
        let select = sql("SELECT changed_rows FROM generation_changes WHERE generation > $1 AND generation <= $2");
        let records = self.fetch_all(select.bind(since).bind(until), |row| row.get::<String>("changed_rows")).await?;
        // Older servers record nothing, and a database that was restored has an earlier generation.
        if i64::try_from(records.len()) != Ok(until - since) {
            return Ok(None);
        }
        let mut rows = ChangedRows::default();
        for record in records {
            match serde_json::from_str(&record) {
                Ok(changed) => rows.merge(changed),
                Err(error) => {
                    tracing::warn!(%error, "unreadable record of another server's changes; reading everything");
                    return Ok(None);
                }
            }
        }
        let changes = self.read_changed_rows(&rows).await?;
        let ChangedRows { configs, numbered_configs, .. } = rows;
        Ok(Some(ExternalChanges { since, generation: until, changes, configs, numbered_configs }))
    }
}
