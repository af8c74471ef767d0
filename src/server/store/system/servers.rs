//! The servers that share a database: which are alive, and which is the leader.

use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use crate::store::Result;

/// A server in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredServer {
    pub id: String,
    /// Whether it is the leader.
    pub is_leader: bool,
    /// Its last sign of life; `None` on an engine that serves one server only.
    pub seen_at: Option<Timestamp>,
    /// The version of its program; `None` if it is older than this column.
    pub version: Option<String>,
}

/// Servers. On an engine that serves one server only, that one is alive and leader.
#[async_trait]
pub trait ServerQueries {
    /// Records a sign of life of this server; returns the servers with one within `duration`, including itself.
    async fn heartbeat_server(&mut self, duration: Millis) -> Result<Vec<String>>;
    /// Acquires or renews the leadership for `duration` from now by the database's clock; returns whether this server
    /// is the leader.
    async fn try_lead(&mut self, duration: Millis) -> Result<bool>;
    /// Returns whether there is a leader.
    async fn has_leader(&mut self) -> Result<bool>;
    /// The time of the database, which all servers use; `None` on an engine that serves one server only.
    async fn database_time(&mut self) -> Result<Option<Timestamp>>;
    /// The servers with a sign of life within `duration`, and which of them is the leader.
    async fn registered_servers(&mut self, duration: Millis) -> Result<Vec<RegisteredServer>>;
    /// Removes this server, which stops, and its leadership.
    async fn remove_server(&mut self) -> Result<()>;
}
