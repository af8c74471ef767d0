pub mod attempts;
pub mod retention;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, JobProperty};
use app::domain::plan::urgency;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFilter {
    /// States; empty: all.
    pub states: Vec<&'static str>,
    /// Only jobs with an attempt that was offered to this worker.
    pub worker: Option<WorkerId>,
    /// Only jobs submitted at this time or later.
    pub since: Option<Timestamp>,
    /// Only jobs submitted before this time.
    pub until: Option<Timestamp>,
    /// Only jobs that ended at this time or later.
    pub ended_since: Option<Timestamp>,
    /// Only jobs with exactly these values.
    pub properties: Vec<(JobProperty, String)>,
    /// Only jobs that require this label; without a value, any value of it.
    pub label: Option<(String, Option<String>)>,
    /// Only jobs with this tag.
    pub tag: Option<String>,
    /// Only jobs that match this name.
    pub name: Option<JobNameFilter>,
    /// The order and the cursor.
    pub order: JobListOrder,
    /// The maximum number of jobs.
    pub limit: u32,
}

impl JobFilter {
    /// Jobs of this user, or of all.
    pub fn of_user(user: Option<String>) -> Self {
        let properties = user.map(|user| (JobProperty::User, user)).into_iter().collect();
        Self { properties, ..Self::default() }
    }
}

/// A part of a job's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobNameFilter {
    /// A part of its name or of that of its configuration, in lower case.
    Part(String),
    /// The beginning of its id.
    Id(String),
}

impl JobNameFilter {
    /// Parses a search text.
    pub fn parse(text: &str) -> Self {
        let text = text.to_lowercase();
        if text.starts_with("j_") { Self::Id(text) } else { Self::Part(text) }
    }
}

/// The order of a list of jobs. A cursor is the sort key of the last job, not its current position.
#[derive(Debug, Clone, PartialEq)]
pub enum JobListOrder {
    /// Newest first: those with a smaller id than this.
    Newest(Option<String>),
    /// In queue order: those after this cursor.
    QueueOrder(Option<QueueCursor>),
}

impl Default for JobListOrder {
    fn default() -> Self {
        Self::Newest(None)
    }
}

/// A position in the queue; see [`app::domain::plan::job_sort_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCursor {
    /// Higher is earlier.
    pub urgency: i64,
    pub submitted_at: Timestamp,
    pub id: String,
}

impl QueueCursor {
    pub fn from_job(job: &Job) -> Self {
        Self { urgency: urgency(job), submitted_at: job.submitted_at, id: job.id.to_string() }
    }
}

#[async_trait]
pub trait JobQueries {
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>>;
    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>>;
    /// Counts jobs by state, ignoring the filter's states.
    async fn count_jobs(&mut self, filter: &JobFilter) -> Result<Vec<(String, u64)>>;
    /// The position of a waiting job in the queue, from 1.
    async fn queue_position(&mut self, job: &Job) -> Result<u64>;
    /// Jobs with an active lease, of one worker or of all.
    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>>;
    async fn insert_job(&mut self, job: &Job) -> Result<()>;
    /// The highest number of a job of this configuration that was ever created; 0 before the first.
    async fn last_job_number(&mut self, config: &str) -> Result<u32>;
    /// Writes the description of a job.
    async fn describe_job(&mut self, job: &Job) -> Result<()>;
    /// The job that this user's key has created, and the SHA-256 of its submit.
    async fn idempotency_key(&mut self, actor: &str, key: &str) -> Result<Option<(JobId, String)>>;
    /// Records which job a key has created.
    async fn insert_idempotency_key(&mut self, actor: &str, key: &str, digest: &str, job: &Job) -> Result<()>;
    /// Deletes keys that were recorded before this time.
    async fn sweep_idempotency_keys(&mut self, before: Timestamp) -> Result<()>;
    /// Writes `after` if state and attempt in the row are still those of `before`, else fails with a conflict.
    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()>;
}
