//! Jobs in the database.

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFilter {
    /// State words; empty means any.
    pub states: Vec<&'static str>,
    /// Only jobs of this person.
    pub user: Option<String>,
    /// Only jobs that ask for this label; without a value, for any value of it.
    pub label: Option<(String, Option<String>)>,
    /// Only jobs with a smaller id than this.
    pub before: Option<JobId>,
    /// At most so many.
    pub limit: u32,
}

/// Jobs.
#[async_trait]
pub trait Jobs {
    /// One of them.
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>>;
    /// A page, newest first.
    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>>;
    /// How many there are in each state, of all that the filter's person and label let through.
    async fn count_jobs(&mut self, filter: &JobFilter) -> Result<Vec<(String, u64)>>;
    /// The place of a waiting job among those that wait, from 1, in the order in which planning takes them.
    async fn place(&mut self, job: &Job) -> Result<u64>;
    /// Those with a lease in force, of one worker or of all.
    async fn leased_jobs(&mut self, worker: Option<&WorkerId>) -> Result<Vec<Job>>;
    /// A new one.
    async fn insert_job(&mut self, job: &Job) -> Result<()>;
    /// Which job this person's key has made, and of which submit (by its SHA-256).
    async fn idempotency_key(&mut self, actor: &str, key: &str) -> Result<Option<(JobId, String)>>;
    /// Notes which job a key has made.
    async fn insert_idempotency_key(&mut self, actor: &str, key: &str, digest: &str, job: &Job) -> Result<()>;
    /// Forgets keys that were noted before a moment.
    async fn sweep_idempotency_keys(&mut self, before: Timestamp) -> Result<()>;
    /// Writes `after` if state and attempt in the row are still those of `before`, else a conflict.
    async fn update_job(&mut self, before: &Job, after: &Job) -> Result<()>;
}
