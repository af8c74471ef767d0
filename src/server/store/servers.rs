//! The servers that share a database: who lives, and who leads.

use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use super::Result;

/// A server, as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its name.
    pub id: String,
    /// Whether it leads.
    pub leads: bool,
    /// When it last said that it lives; none on an engine that serves one server only.
    pub seen_at: Option<Timestamp>,
}

/// Servers. On an engine that serves one server only, that one lives and leads.
#[async_trait]
pub trait Servers {
    /// Says that this server lives; returns those that have said so within `span`, itself included.
    async fn living_servers(&mut self, span: Millis) -> Result<Vec<String>>;
    /// Whether this server leads, for `span` from now by the database's clock: it did before, or nobody does.
    async fn lead(&mut self, span: Millis) -> Result<bool>;
    /// Whether a server leads, this one or another.
    async fn leader_is_known(&mut self) -> Result<bool>;
    /// What the database's clock says, by which all servers go; none on an engine that serves one server only.
    async fn shared_time(&mut self) -> Result<Option<Timestamp>>;
    /// The servers that have said within `span` that they live, and which of them leads.
    async fn known_servers(&mut self, span: Millis) -> Result<Vec<KnownServer>>;
    /// This server ends: it does not live or lead any more.
    async fn leave(&mut self) -> Result<()>;
}
