//! Attempts of jobs, with their progress.

use std::ops::RangeInclusive;

use app::domain::causes::LossCode;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttempt {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub worker: WorkerId,
    /// The worker's name at that time.
    pub worker_name: String,
    /// The number of allocated GPUs.
    pub gpus: u32,
    pub offered_at: Timestamp,
    /// When the worker accepted it.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// Why it was lost.
    pub loss_code: Option<LossCode>,
    /// The line of its log with the error, from 1.
    pub error_line: Option<u64>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
    /// The step of the checkpoint from which it resumed.
    pub resumed_from_step: Option<u64>,
    /// The newest progress point, as JSON.
    pub progress: Option<String>,
}

/// The position of an attempt in a worker's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptCursor {
    pub offered_at: Timestamp,
    pub job: JobId,
    pub attempt: AttemptNumber,
}

impl StoredAttempt {
    /// Returns its position in its worker's list.
    pub fn cursor(&self) -> AttemptCursor {
        AttemptCursor { offered_at: self.offered_at, job: self.job.clone(), attempt: self.attempt }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    pub at: Timestamp,
    /// `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: &'static str,
    /// The error, if it failed.
    pub error: Option<String>,
    /// Why it was lost.
    pub loss_code: Option<LossCode>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
}

/// A progress point; `point` is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPoint {
    pub step: i64,
    pub point: String,
}

/// How many points of an attempt are kept. Beyond that they are thinned evenly: the first, the newest, and every n-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointLimit {
    pub max_points: u64,
    /// Their total size in bytes.
    pub max_bytes: u64,
}

#[async_trait]
pub trait AttemptQueries {
    /// All attempts of a job, oldest first.
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>>;
    /// The newest attempts of several jobs.
    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>>;
    /// Attempts offered to a worker, newest first, after a cursor, each with its configuration's name.
    async fn worker_attempts(
        &mut self,
        worker: &WorkerId,
        after: Option<&AttemptCursor>,
        limit: u32,
    ) -> Result<Vec<(StoredAttempt, String)>>;
    /// The number of attempts offered to a worker since then, by outcome; `None` for unfinished ones.
    async fn worker_outcomes(&mut self, worker: &WorkerId, since: Timestamp) -> Result<Vec<(Option<String>, u64)>>;
    /// The attempt of a job token, by its SHA-256.
    async fn attempt_by_token(&mut self, digest: &str) -> Result<Option<(JobId, AttemptNumber, WorkerId)>>;
    async fn insert_attempt(&mut self, attempt: &StoredAttempt, token_digest: &str) -> Result<()>;
    /// Records that the worker has accepted it. Only the first time counts.
    async fn start_attempt(&mut self, job: &JobId, attempt: AttemptNumber, at: Timestamp) -> Result<()>;
    /// Records its end; a later outcome replaces an earlier one (a lost attempt that was recovered and completed).
    async fn end_attempt(&mut self, job: &JobId, attempt: AttemptNumber, end: &AttemptEnd) -> Result<()>;
    /// Records the step of the checkpoint from which it resumed.
    async fn set_resumed_from(&mut self, job: &JobId, attempt: AttemptNumber, step: i64) -> Result<()>;
    /// Records the line of its log with the error.
    async fn set_error_line(&mut self, job: &JobId, attempt: AttemptNumber, line: i64) -> Result<()>;
    /// Removes its end: the attempt was recovered.
    async fn recover_attempt(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<()>;
    /// The best values of an attempt's metrics, as JSON.
    async fn best_metrics(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<Option<String>>;
    async fn set_best_metrics(&mut self, job: &JobId, attempt: AttemptNumber, best: &str) -> Result<()>;
    /// Inserts points; replaces those of existing steps.
    async fn add_points(
        &mut self,
        job: &JobId,
        attempt: AttemptNumber,
        points: &[StoredPoint],
        limit: PointLimit,
    ) -> Result<()>;
    /// The thinning of an attempt: one of how many points is kept.
    async fn point_stride(&mut self, job: &JobId, attempt: AttemptNumber) -> Result<u64>;
    /// The points of these steps in order, thinned to about `max`; always with the first and the last.
    async fn points(
        &mut self,
        job: &JobId,
        attempt: AttemptNumber,
        steps: RangeInclusive<i64>,
        max: u32,
    ) -> Result<Vec<String>>;
}
