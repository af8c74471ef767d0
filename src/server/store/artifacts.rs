//! The record of files that jobs made; the bytes are elsewhere.

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Path below the job's output.
    pub path: String,
    /// Which attempt made it.
    pub attempt: Attempt,
    /// `final`, `checkpoint`, `sample` or `other`.
    pub kind: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// When it arrived.
    pub created_at: Timestamp,
}

/// Artifacts.
#[async_trait]
pub trait Artifacts {
    /// Those of a job, by path; of one path only the newest attempt's.
    async fn artifacts(&mut self, job: &JobId) -> Result<Vec<StoredArtifact>>;
    /// Those that one attempt sent, by path.
    async fn artifacts_of(&mut self, job: &JobId, attempt: Attempt) -> Result<Vec<StoredArtifact>>;
    /// The newest attempt's file of this path.
    async fn artifact(&mut self, job: &JobId, path: &str) -> Result<Option<StoredArtifact>>;
    /// How many bytes a job's files have, but for one of this attempt and path.
    async fn bytes_beside(&mut self, job: &JobId, but: (Attempt, &str)) -> Result<u64>;
    /// How many bytes the files of a person's jobs have.
    async fn bytes_of_person(&mut self, person: &str) -> Result<u64>;
    /// Whether there are so many of a job, of all its attempts, beside this one.
    async fn has_artifacts(&mut self, job: &JobId, beside: (Attempt, &str), number: u64) -> Result<bool>;
    /// Adds or replaces one.
    async fn put_artifact(&mut self, job: &JobId, artifact: &StoredArtifact) -> Result<()>;
}
