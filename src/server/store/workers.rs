//! Workers in the database.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::domain::worker::credential::WorkerCredential;
use async_trait::async_trait;

use super::Result;

/// A worker with what the domain does not need.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWorker {
    pub worker: Worker,
    /// The credential of its agent.
    pub credential: Arc<WorkerCredential>,
    /// The last contact, as last flushed.
    pub last_seen: Option<LastContact>,
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastContact {
    pub at: Timestamp,
    /// The address, as far as known.
    pub from: Option<IpAddr>,
}

#[async_trait]
pub trait WorkerQueries {
    async fn workers(&mut self) -> Result<Vec<StoredWorker>>;
    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>>;
    /// The worker of this token or session, also a former one, by its SHA-256. The credential decides whether it is
    /// valid.
    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<StoredWorker>>;
    /// Inserts a worker. A conflict means that the name is taken.
    async fn insert_worker(&mut self, worker: &Worker, credential: &WorkerCredential) -> Result<()>;
    /// Writes `after` if the row is still `before`, else fails with a conflict.
    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()>;
    /// Replaces its tokens; earlier ones are no longer valid.
    async fn put_credential(&mut self, id: &WorkerId, credential: &WorkerCredential) -> Result<()>;
    /// Deletes a worker; a conflict if its agent is connected.
    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()>;
    /// Records last contacts of workers.
    async fn flush_last_seen(&mut self, contacts: &[(WorkerId, LastContact)]) -> Result<()>;
}
