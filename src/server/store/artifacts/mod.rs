//! Records of job files; their bytes are in the artifact store.

pub mod checkpoints;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Path below the job's output.
    pub path: String,
    /// The attempt that uploaded it.
    pub attempt: AttemptNumber,
    /// `final`, `checkpoint`, `sample` or `other`.
    pub kind: String,
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

#[async_trait]
pub trait ArtifactQueries {
    /// The files of a job by path; for each path only the newest attempt's.
    async fn artifacts(&mut self, job: &JobId) -> Result<Vec<StoredArtifact>>;
    /// The files of one attempt by path.
    async fn attempt_artifacts(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<Vec<StoredArtifact>>;
    /// The newest attempt's file of this path.
    async fn artifact(&mut self, job: &JobId, path: &str) -> Result<Option<StoredArtifact>>;
    /// The total size of a job's files, without one attempt's file of this path.
    async fn other_artifact_bytes(&mut self, job: &JobId, except: (AttemptNumber, &str)) -> Result<u64>;
    /// The total size of the files of a user's jobs, in bytes.
    async fn user_artifact_bytes(&mut self, user: &str) -> Result<u64>;
    /// Returns whether a job has at least this many files, of all attempts, besides this one.
    async fn has_other_artifacts(&mut self, job: &JobId, except: (AttemptNumber, &str), number: u64) -> Result<bool>;
    /// Inserts or replaces a file.
    async fn put_artifact(&mut self, job: &JobId, artifact: &StoredArtifact) -> Result<()>;
}
