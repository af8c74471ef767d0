//! All that lives, in memory: every worker, every job that has not ended, and who may come in.
//!
//! The writer keeps one for its decisions; another, on the [board](super::board), says what was committed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, State};
use app::domain::plan;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;

use super::live::Live;
use super::workers::StoredWorker;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Known {
    workers: BTreeMap<WorkerId, Arc<StoredWorker>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    /// The jobs that wait, by rank.
    queue: BTreeSet<Rank>,
    /// The jobs that hold a lease, by worker.
    leases: BTreeMap<WorkerId, BTreeSet<JobId>>,
    /// Whose worker token has this digest, and the other way round.
    tokens: HashMap<String, WorkerId>,
    digests: HashMap<WorkerId, String>,
    /// The name of the API token that has this digest.
    api_tokens: HashMap<String, String>,
}

/// The order in which planning takes what waits; see [`plan::rank`].
type Rank = (Reverse<i64>, Timestamp, JobId);

fn rank(job: &Job) -> Rank {
    let (urgency, submitted_at, id) = plan::rank(job);
    (urgency, submitted_at, id.clone())
}

/// One thing that was written.
#[derive(Debug, Clone)]
pub enum Change {
    /// A worker is like this now.
    Worker(Box<Worker>),
    /// A worker has another token, of this digest.
    Token(WorkerId, String),
    /// A worker was heard of.
    Seen(WorkerId, Timestamp),
    /// A worker is gone.
    Removed(WorkerId),
    /// A job is like this now.
    Job(Arc<Job>),
    /// The API token of this name has this digest.
    ApiToken {
        /// Its name.
        name: String,
        /// Its SHA-256, in hex.
        digest: String,
    },
}

impl Known {
    /// What a database says.
    pub fn new(
        workers: impl IntoIterator<Item = StoredWorker>,
        tokens: HashMap<String, WorkerId>,
        jobs: impl IntoIterator<Item = Job>,
        api_tokens: HashMap<String, String>,
    ) -> Self {
        let workers = workers.into_iter().map(|stored| (stored.worker.id.clone(), Arc::new(stored))).collect();
        let digests = tokens.iter().map(|(digest, worker)| (worker.clone(), digest.clone())).collect();
        let mut known = Self { workers, tokens, digests, api_tokens, ..Self::default() };
        for job in jobs {
            known.put_job(Arc::new(job));
        }
        known
    }

    /// Follows what was written.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Worker(worker) => {
                let last_seen = self.workers.get(&worker.id).and_then(|stored| stored.last_seen);
                self.workers.insert(worker.id.clone(), Arc::new(StoredWorker { worker: *worker, last_seen }));
            }
            Change::Token(worker, digest) => {
                if let Some(old) = self.digests.insert(worker.clone(), digest.clone()) {
                    self.tokens.remove(&old);
                }
                self.tokens.insert(digest, worker);
            }
            Change::Seen(id, at) => {
                if let Some(stored) = self.workers.get_mut(&id) {
                    let last_seen = stored.last_seen.max(Some(at));
                    Arc::make_mut(stored).last_seen = last_seen;
                }
            }
            Change::Removed(id) => {
                self.workers.remove(&id);
                if let Some(old) = self.digests.remove(&id) {
                    self.tokens.remove(&old);
                }
            }
            Change::Job(job) => self.put_job(job),
            Change::ApiToken { name, digest } => {
                self.api_tokens.retain(|_, other| *other != name);
                self.api_tokens.insert(digest, name);
            }
        }
    }

    fn put_job(&mut self, job: Arc<Job>) {
        if let Some(before) = self.jobs.remove(&job.id) {
            self.queue.remove(&rank(&before));
            if let Some(lease) = before.live_lease()
                && let Some(held) = self.leases.get_mut(&lease.worker)
            {
                held.remove(&job.id);
                if held.is_empty() {
                    self.leases.remove(&lease.worker);
                }
            }
        }
        if let Some(lease) = job.live_lease() {
            self.leases.entry(lease.worker.clone()).or_default().insert(job.id.clone());
        }
        if matches!(job.state, State::Queued { .. }) {
            self.queue.insert(rank(&job));
        }
        if !job.has_ended() {
            self.jobs.insert(job.id.clone(), job);
        }
    }

    /// A worker; none if there is none.
    pub fn worker(&self, id: &WorkerId) -> Option<&Arc<StoredWorker>> {
        self.workers.get(id)
    }

    /// Whose worker token has this digest.
    pub fn worker_by_token(&self, digest: &str) -> Option<&WorkerId> {
        self.tokens.get(digest)
    }

    /// The name of the API token that has this digest.
    pub fn api_token(&self, digest: &str) -> Option<&String> {
        self.api_tokens.get(digest)
    }

    /// A job that lives; one that is not here may have ended.
    pub fn job(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.jobs.get(id)
    }

    /// The jobs that hold a lease, of one worker or of all, in the order of their submits.
    pub fn leased(&self, worker: Option<&WorkerId>) -> Vec<&Job> {
        let job = |id: &JobId| self.jobs.get(id).map(Arc::as_ref);
        let mut leased: Vec<&Job> = match worker {
            Some(worker) => self.leases.get(worker).into_iter().flatten().filter_map(job).collect(),
            None => self.leases().collect(),
        };
        leased.sort_by_key(|job| (job.submitted_at, &job.id));
        leased
    }

    /// The place of a job among those that wait, from 1, in the order in which planning takes them.
    pub fn place(&self, job: &Job) -> u64 {
        self.queue.range(..rank(job)).count() as u64 + 1
    }

    /// The workers.
    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.values().map(|stored| &stored.worker)
    }

    /// The jobs that wait, by rank.
    pub fn waiting(&self) -> impl Iterator<Item = &Job> {
        self.queue.iter().filter_map(|(_, _, id)| self.jobs.get(id)).map(Arc::as_ref)
    }

    /// The jobs that hold a lease.
    pub fn leases(&self) -> impl Iterator<Item = &Job> {
        self.leases.values().flatten().filter_map(|id| self.jobs.get(id)).map(Arc::as_ref)
    }

    /// All of it, shared.
    pub fn live(&self) -> Live {
        Live { workers: self.workers.values().cloned().collect(), jobs: self.jobs.values().cloned().collect() }
    }
}
