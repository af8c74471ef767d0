//! Workers in the database.

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use async_trait::async_trait;

use super::Result;

/// A worker with what the rules do not need.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWorker {
    /// The worker.
    pub worker: Worker,
    /// When it was last heard of, as last flushed.
    pub last_seen: Option<Timestamp>,
}

/// Workers.
#[async_trait]
pub trait Workers {
    /// All of them, by name.
    async fn workers(&mut self) -> Result<Vec<StoredWorker>>;
    /// One of them.
    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>>;
    /// Whose token this is, by its SHA-256.
    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<WorkerId>>;
    /// A new one. A conflict means that the name is taken.
    async fn insert_worker(&mut self, worker: &Worker, token_digest: &str) -> Result<()>;
    /// Writes `after` if the row still says `before`, else a conflict.
    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()>;
    /// Gives it a new token; the old one opens nothing any more.
    async fn put_worker_token(&mut self, id: &WorkerId, token_digest: &str) -> Result<()>;
    /// Removes it.
    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()>;
    /// Notes when workers were last heard of.
    async fn flush_last_seen(&mut self, seen: &[(WorkerId, Timestamp)]) -> Result<()>;
}
