//! Attempts at jobs, and how far each came.

use app::domain::ids::{Attempt, JobId, WorkerId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// One attempt, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The job.
    pub job: JobId,
    /// Its number.
    pub attempt: Attempt,
    /// The worker it was offered to.
    pub worker: WorkerId,
    /// That worker's name at the time.
    pub worker_name: String,
    /// How many GPUs it was granted.
    pub gpus: u32,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker took it.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended: `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
    /// The step of the checkpoint that it went on from.
    pub resumed_from_step: Option<u64>,
    /// The newest progress point, as JSON.
    pub progress: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    /// When.
    pub at: Timestamp,
    /// `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: &'static str,
    /// What went wrong.
    pub error: Option<String>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
}

/// One point of progress; `point` is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPoint {
    /// The step.
    pub step: i64,
    /// The point as JSON.
    pub point: String,
}

/// Attempts.
#[async_trait]
pub trait Attempts {
    /// Every attempt at a job, oldest first.
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>>;
    /// The newest attempts of several jobs.
    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>>;
    /// Whose job token this is, by its SHA-256.
    async fn attempt_by_token(&mut self, digest: &str) -> Result<Option<(JobId, Attempt, WorkerId)>>;
    /// A new one.
    async fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) -> Result<()>;
    /// The worker took it. Only the first time counts.
    async fn start_attempt(&mut self, job: &JobId, attempt: Attempt, at: Timestamp) -> Result<()>;
    /// It ended; a later word replaces an earlier one (a lost attempt that came back and completed).
    async fn end_attempt(&mut self, job: &JobId, attempt: Attempt, end: &AttemptEnd) -> Result<()>;
    /// It goes on from the checkpoint of this step.
    async fn note_resumed(&mut self, job: &JobId, attempt: Attempt, step: i64) -> Result<()>;
    /// It came back.
    async fn reopen_attempt(&mut self, job: &JobId, attempt: Attempt) -> Result<()>;
    /// Adds points; a step that is there already is replaced.
    async fn add_points(&mut self, job: &JobId, attempt: Attempt, points: &[StoredPoint]) -> Result<()>;
    /// Points in order, thinned to about `most`; first and last are always among them.
    async fn points(&mut self, job: &JobId, attempt: Attempt, most: u32) -> Result<Vec<String>>;
}
