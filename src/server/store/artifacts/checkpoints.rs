//! Complete checkpoints; their files are artifacts.

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use crate::store::Result;

/// A checkpoint with all its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// The attempt that uploaded it.
    pub attempt: AttemptNumber,
    pub name: String,
    pub step: i64,
    /// Its files with sizes and digests, as JSON.
    pub files: String,
    /// When it was complete.
    pub created_at: Timestamp,
    /// The time since the attempt's previous checkpoint, or since its trainer started.
    pub interval: Option<Millis>,
}

/// The newest checkpoint of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestCheckpoint {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub step: i64,
    pub created_at: Timestamp,
    pub interval: Option<Millis>,
}

#[async_trait]
pub trait CheckpointQueries {
    /// The checkpoints of a job, highest step first, and for one step the newest attempt's first.
    async fn checkpoints(&mut self, job: &JobId) -> Result<Vec<StoredCheckpoint>>;
    /// The newest checkpoint of each of these jobs that has any.
    async fn newest_checkpoints(&mut self, jobs: &[JobId]) -> Result<Vec<NewestCheckpoint>>;
    /// Attempt and path of all files of a job in checkpoint directories, complete or not.
    async fn checkpoint_files(&mut self, job: &JobId) -> Result<Vec<(AttemptNumber, String)>>;
    /// Inserts or replaces a checkpoint.
    async fn put_checkpoint(&mut self, job: &JobId, checkpoint: &StoredCheckpoint) -> Result<()>;
}
