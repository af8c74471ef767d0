//! Work of a group at its end.

use super::SqlSession;
use super::statement::sql;
use crate::store::Result;
use crate::store::commit_group::CommitGroup;

/// The channel for notifications between servers.
pub const CHANNEL: &str = "simpletuner";
/// PostgreSQL's limit for one notification, in bytes, with a margin.
const MAX_PAYLOAD_BYTES: usize = 7_900;

impl CommitGroup for SqlSession<'_> {
    fn request_planning(&mut self) {
        self.planning_requested = true;
    }

    fn notify(&mut self, topics: Vec<String>) {
        self.topics.extend(topics);
    }
}

impl SqlSession<'_> {
    /// Notifies other servers when this transaction is committed; returns the topics to notify here.
    pub(super) async fn notify_peers(&mut self) -> Result<Vec<String>> {
        let topics: Vec<String> = std::mem::take(&mut self.topics).into_iter().collect();
        let (generation, changed) = self.cache.as_ref().map_or((0, false), |cache| cache.pending_generation());
        // A change without a topic invalidates the snapshots of other servers too.
        if !self.is_single_server() && (changed || !topics.is_empty()) {
            let sender = format!("{} {generation}", self.shared.chain);
            let payload = format!("{sender} {}", topics.join(" "));
            let payload = if payload.len() > MAX_PAYLOAD_BYTES { format!("{sender} *") } else { payload };
            self.fetch_first(sql("SELECT pg_notify($1, $2)::text AS rung").bind(CHANNEL).bind(payload)).await?;
        }
        Ok(topics)
    }
}
