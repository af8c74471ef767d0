//! Workers in the database.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::domain::worker::credential::Credential;
use async_trait::async_trait;

use super::Result;

/// A worker with what the rules do not need.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWorker {
    /// The worker.
    pub worker: Worker,
    /// What opens the API for its agent.
    pub credential: Arc<Credential>,
    /// When it was last heard of, as last flushed.
    pub last_seen: Option<Seen>,
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// When.
    pub at: Timestamp,
    /// From which address, as far as it is known.
    pub from: Option<IpAddr>,
}

/// Workers.
#[async_trait]
pub trait Workers {
    /// All of them, by name.
    async fn workers(&mut self) -> Result<Vec<StoredWorker>>;
    /// One of them.
    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>>;
    /// Whose token or session this is or was, by its SHA-256. Whether it opens, its credential says.
    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<StoredWorker>>;
    /// A new one. A conflict means that the name is taken.
    async fn insert_worker(&mut self, worker: &Worker, credential: &Credential) -> Result<()>;
    /// Writes `after` if the row still says `before`, else a conflict.
    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()>;
    /// Gives it other tokens; those until now open nothing any more.
    async fn put_credential(&mut self, id: &WorkerId, credential: &Credential) -> Result<()>;
    /// Removes it.
    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()>;
    /// Notes when workers were last heard of.
    async fn flush_last_seen(&mut self, seen: &[(WorkerId, Seen)]) -> Result<()>;
}
