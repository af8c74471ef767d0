//! Which checkpoints are here whole; their files are artifacts.

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A checkpoint of which every file arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Which attempt sent it.
    pub attempt: Attempt,
    /// Its directory's name.
    pub name: String,
    /// The step at which it was made.
    pub step: i64,
    /// Its files with their sizes and digests, as JSON.
    pub files: String,
    /// When it was whole.
    pub created_at: Timestamp,
}

/// Checkpoints.
#[async_trait]
pub trait Checkpoints {
    /// Those of a job, the highest step first, and of one step the newest attempt's.
    async fn checkpoints(&mut self, job: &JobId) -> Result<Vec<StoredCheckpoint>>;
    /// All files of a job below directories that are named as checkpoints are, whole or not: which attempt made each, and
    /// its path.
    async fn checkpoint_files(&mut self, job: &JobId) -> Result<Vec<(Attempt, String)>>;
    /// Adds or replaces one.
    async fn put_checkpoint(&mut self, job: &JobId, checkpoint: &StoredCheckpoint) -> Result<()>;
}
