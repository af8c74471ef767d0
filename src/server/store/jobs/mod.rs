pub mod attempts;
pub mod retention;
pub mod sample_votes;
pub mod saved_views;

use std::collections::BTreeSet;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, JobOverrides};
use app::domain::job_search::index::IndexedJob;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A job for the index of jobs. What is JSON in the database is left to its reader.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRow {
    /// Without overrides and metrics.
    pub job: IndexedJob,
    pub overrides: JobOverrides,
    /// The newest progress point of its newest attempt, as JSON.
    pub progress: Option<String>,
    /// The votes on its samples, as JSON.
    pub vote_tally: Option<String>,
    /// The best values of the metrics of each attempt, as JSON, the oldest first.
    pub best_metrics: Vec<String>,
}

/// Rows in the order of their IDs.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRows {
    pub rows: Vec<IndexRow>,
    /// The ID of the last row, also if it is corrupt; `None` if there are no more.
    pub last: Option<String>,
}

#[async_trait]
pub trait JobQueries {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>>;
    /// Jobs in the order of these IDs, without those that are gone.
    async fn jobs_by_id(&mut self, ids: &[JobId]) -> Result<Vec<Job>>;
    /// The first jobs, by ID, that retry or fork one of these.
    async fn jobs_that_retry(&mut self, origins: &[JobId], limit: usize) -> Result<Vec<Job>>;
    /// The newest completed job of a configuration, of all users or of one.
    async fn last_completed_job(&mut self, config: &str, owner: Option<&str>) -> Result<Option<JobId>>;
    /// Jobs for the index, without those that are gone.
    async fn index_rows(&mut self, ids: &BTreeSet<JobId>) -> Result<Vec<IndexRow>>;
    /// The first jobs after an ID, for the index.
    async fn index_rows_after(&mut self, id: &str, limit: u32) -> Result<IndexRows>;
    /// Jobs with an active lease, of one worker or of all.
    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>>;
    async fn insert_job(&mut self, job: &Job) -> Result<()>;
    /// The highest number of a job of this configuration that was ever created; 0 before the first.
    async fn last_job_number(&mut self, config: &str) -> Result<u32>;
    /// Writes the description of a job.
    async fn describe_job(&mut self, job: &Job) -> Result<()>;
    /// Writes who has starred a job.
    async fn star_job(&mut self, job: &Job) -> Result<()>;
    /// The job that this user's key has created, and the SHA-256 of its submit.
    async fn idempotency_key(&mut self, actor: &str, key: &str) -> Result<Option<(JobId, String)>>;
    /// Records which job a key has created.
    async fn insert_idempotency_key(&mut self, actor: &str, key: &str, digest: &str, job: &Job) -> Result<()>;
    /// Deletes keys that were recorded before this time.
    async fn sweep_idempotency_keys(&mut self, before: Timestamp) -> Result<()>;
    /// Writes `after` if state and attempt in the row are still those of `before`, else fails with a conflict.
    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()>;
}
