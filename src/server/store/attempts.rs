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
    /// The line of its log that says so, from 1.
    pub error_line: Option<u64>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
    /// The step of the checkpoint that it went on from.
    pub resumed_from_step: Option<u64>,
    /// The newest progress point, as JSON.
    pub progress: Option<String>,
}

/// Where an attempt stands in the list of a worker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptPlace {
    /// When it was offered.
    pub offered_at: Timestamp,
    /// The job.
    pub job: JobId,
    /// Its number.
    pub attempt: Attempt,
}

impl StoredAttempt {
    /// Where it stands in the list of its worker's.
    pub fn place(&self) -> AttemptPlace {
        AttemptPlace { offered_at: self.offered_at, job: self.job.clone(), attempt: self.attempt }
    }
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

/// How much is kept of an attempt's points. What is more is thinned evenly: the first, the newest, and every n-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointLimit {
    /// How many.
    pub most: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// Attempts.
#[async_trait]
pub trait Attempts {
    /// Every attempt at a job, oldest first.
    async fn attempts(&mut self, job: &JobId) -> Result<Vec<StoredAttempt>>;
    /// The newest attempts of several jobs.
    async fn newest_attempts(&mut self, jobs: &[JobId]) -> Result<Vec<StoredAttempt>>;
    /// Attempts that were offered to a worker, newest first, from behind a place, each with its configuration's name.
    async fn attempts_on(
        &mut self,
        worker: &WorkerId,
        behind: Option<&AttemptPlace>,
        limit: u32,
    ) -> Result<Vec<(StoredAttempt, String)>>;
    /// How many attempts were offered to a worker since then, by how they ended; by none those that go on.
    async fn outcomes_on(&mut self, worker: &WorkerId, since: Timestamp) -> Result<Vec<(Option<String>, u64)>>;
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
    /// This line of its log says what went wrong.
    async fn note_error_line(&mut self, job: &JobId, attempt: Attempt, line: i64) -> Result<()>;
    /// It came back.
    async fn reopen_attempt(&mut self, job: &JobId, attempt: Attempt) -> Result<()>;
    /// Adds points; a step that is there already is replaced.
    async fn add_points(
        &mut self,
        job: &JobId,
        attempt: Attempt,
        points: &[StoredPoint],
        limit: PointLimit,
    ) -> Result<()>;
    /// Of how many points one is kept.
    async fn points_every(&mut self, job: &JobId, attempt: Attempt) -> Result<u64>;
    /// Points in order, thinned to about `most`; first and last are always among them.
    async fn points(&mut self, job: &JobId, attempt: Attempt, most: u32) -> Result<Vec<String>>;
}
