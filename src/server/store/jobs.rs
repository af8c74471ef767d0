//! Jobs in the database.

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::Job;
use app::domain::plan::urgency;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobFilter {
    /// State words; empty means any.
    pub states: Vec<&'static str>,
    /// Only jobs of which an attempt was offered to this worker.
    pub worker: Option<WorkerId>,
    /// Only jobs that were submitted at this moment or later.
    pub since: Option<Timestamp>,
    /// Only jobs that were submitted before this moment.
    pub until: Option<Timestamp>,
    /// Only jobs that ended at this moment or later.
    pub ended_since: Option<Timestamp>,
    /// Only jobs of this person.
    pub user: Option<String>,
    /// Only jobs that ask for this label; without a value, for any value of it.
    pub label: Option<(String, Option<String>)>,
    /// In which order, and from where.
    pub order: Order,
    /// At most so many.
    pub limit: u32,
}

/// The order of a list of jobs. A page goes on by what its last job was like, not by where that one is now.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// The newest first: those with a smaller id than this.
    Newest(Option<String>),
    /// As planning takes them: those that come after this.
    Next(Option<Turn>),
}

impl Default for Order {
    fn default() -> Self {
        Self::Newest(None)
    }
}

/// When a job's turn is, as planning orders them; see [`app::domain::plan::rank`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// More is earlier.
    pub urgency: i64,
    /// Then the older one.
    pub submitted_at: Timestamp,
    /// Then by id.
    pub id: String,
}

impl Turn {
    /// Of a job.
    pub fn of(job: &Job) -> Self {
        Self { urgency: urgency(job), submitted_at: job.submitted_at, id: job.id.to_string() }
    }
}

/// Jobs.
#[async_trait]
pub trait Jobs {
    /// One of them.
    async fn job(&mut self, id: &JobId) -> Result<Option<Job>>;
    /// A page.
    async fn jobs(&mut self, filter: &JobFilter) -> Result<Vec<Job>>;
    /// How many there are in each state, of all that the filter but for its states lets through.
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
