//! The live state in memory: all workers, all jobs that have not ended, users and their credentials.
//!
//! The writer has one for its decisions; another one, the [committed snapshot](super::snapshot), is the state of the
//! last commit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, Lease};
use app::domain::matching::{Candidate, has_capacity};
use app::domain::plan::{self, ConcurrencyLimits, PlannerFleet};
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::domain::worker::credential::WorkerCredential;

use crate::store::cache::access::{AccessChange, AccessState};
use crate::store::workers::{LastContact, StoredWorker};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetState {
    workers: BTreeMap<WorkerId, Arc<StoredWorker>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    /// Queued jobs by sort key.
    queue: BTreeSet<QueueKey>,
    /// Workers by sort key.
    worker_order: BTreeSet<WorkerOrderKey>,
    /// The number of workers that have capacity for a job.
    workers_with_capacity: usize,
    /// The number of jobs with a lease, by user.
    running_by_user: BTreeMap<String, u32>,
    /// The number of jobs that wait, in the queue or not, by user.
    waiting_by_user: BTreeMap<String, usize>,
    /// The jobs with a lease, by worker.
    leases_by_worker: BTreeMap<WorkerId, BTreeSet<JobId>>,
    /// Workers by the digest of their token.
    workers_by_token: HashMap<String, WorkerId>,
    /// Users and their credentials.
    access: AccessState,
}

/// The queue order of planning; see [`plan::job_sort_key`].
type QueueKey = (Reverse<i64>, Timestamp, JobId);

fn queue_key(job: &Job) -> QueueKey {
    let (urgency, submitted_at, id) = plan::job_sort_key(job);
    (urgency, submitted_at, id.clone())
}

/// The order in which planning tries workers; see [`plan::worker_sort_key`].
type WorkerOrderKey = ((Reverse<bool>, bool, Reverse<bool>, usize, Timestamp, String), WorkerId);

fn worker_order_key(worker: &Worker, jobs: usize) -> WorkerOrderKey {
    let (has_capacity, local, has_gpus, gpus, since, name) = plan::worker_sort_key(worker, jobs);
    ((has_capacity, local, has_gpus, gpus, since, name.to_owned()), worker.id.clone())
}

/// The digests by which a credential is found.
fn credential_digests(credential: &WorkerCredential) -> impl Iterator<Item = &String> {
    let old = credential.previous.as_ref().map(|old| &old.digest);
    let session = credential.session.as_ref().map(|session| &session.digest);
    [Some(&credential.digest), old, session].into_iter().flatten()
}

/// A change of the state.
#[derive(Debug, Clone)]
pub enum StateChange {
    Worker(Box<Worker>),
    /// A worker has other tokens.
    Credential(WorkerId, WorkerCredential),
    /// A worker was in contact.
    Contact(WorkerId, LastContact),
    /// A worker was deleted.
    WorkerRemoved(WorkerId),
    Job(Arc<Job>),
    /// A job was deleted.
    JobRemoved(JobId),
    Access(AccessChange),
}

impl FleetState {
    /// Builds the state from the rows of a database.
    pub fn new(
        workers: impl IntoIterator<Item = StoredWorker>,
        jobs: impl IntoIterator<Item = Job>,
        access: AccessState,
    ) -> Self {
        let mut fleet_state = Self { access, ..Self::default() };
        for stored in workers {
            fleet_state.index_tokens(&stored);
            fleet_state.put_worker(stored);
        }
        for job in jobs {
            fleet_state.put_job(Arc::new(job));
        }
        fleet_state
    }

    pub fn apply(&mut self, change: StateChange) {
        match change {
            StateChange::Worker(worker) => {
                let before = self.workers.get(&worker.id);
                let last_seen = before.and_then(|stored| stored.last_seen);
                let credential = before.map(|stored| Arc::clone(&stored.credential)).unwrap_or_default();
                self.put_worker(StoredWorker { worker: *worker, credential, last_seen });
            }
            StateChange::Credential(id, credential) => {
                if let Some(stored) = self.workers.get_mut(&id) {
                    let old = std::mem::replace(&mut Arc::make_mut(stored).credential, Arc::new(credential));
                    let stored = Arc::clone(stored);
                    self.unindex_tokens(&old);
                    self.index_tokens(&stored);
                }
            }
            StateChange::Contact(id, contact) => {
                if let Some(stored) = self.workers.get_mut(&id) {
                    let last_seen = stored.last_seen.max(Some(contact));
                    Arc::make_mut(stored).last_seen = last_seen;
                }
            }
            StateChange::WorkerRemoved(id) => {
                self.unindex_worker(&id);
                if let Some(removed) = self.workers.remove(&id) {
                    self.unindex_tokens(&removed.credential);
                }
            }
            StateChange::Job(job) => self.put_job(job),
            StateChange::JobRemoved(id) => self.remove_job(&id),
            StateChange::Access(change) => self.access.apply(change),
        }
    }

    fn index_tokens(&mut self, stored: &StoredWorker) {
        for digest in credential_digests(&stored.credential) {
            self.workers_by_token.insert(digest.clone(), stored.worker.id.clone());
        }
    }

    fn unindex_tokens(&mut self, credential: &WorkerCredential) {
        for digest in credential_digests(credential) {
            self.workers_by_token.remove(digest);
        }
    }

    fn put_worker(&mut self, stored: StoredWorker) {
        let id = stored.worker.id.clone();
        self.unindex_worker(&id);
        self.workers.insert(id.clone(), Arc::new(stored));
        self.index_worker(&id);
    }

    fn remove_job(&mut self, id: &JobId) {
        let Some(before) = self.jobs.remove(id) else { return };
        self.queue.remove(&queue_key(&before));
        if before.state.waiting().is_some()
            && let Some(number) = self.waiting_by_user.get_mut(&before.submitted_by)
        {
            *number -= 1;
            if *number == 0 {
                self.waiting_by_user.remove(&before.submitted_by);
            }
        }
        self.remove_lease(&before);
    }

    fn put_job(&mut self, job: Arc<Job>) {
        self.remove_job(&job.id);
        self.add_lease(&job);
        if job.is_queued() {
            self.queue.insert(queue_key(&job));
        }
        if job.state.waiting().is_some() {
            *self.waiting_by_user.entry(job.submitted_by.clone()).or_default() += 1;
        }
        if !job.has_ended() {
            self.jobs.insert(job.id.clone(), job);
        }
    }

    fn add_lease(&mut self, job: &Job) {
        let Some(lease) = job.active_lease() else { return };
        self.unindex_worker(&lease.worker);
        self.leases_by_worker.entry(lease.worker.clone()).or_default().insert(job.id.clone());
        *self.running_by_user.entry(job.submitted_by.clone()).or_default() += 1;
        self.index_worker(&lease.worker);
    }

    fn remove_lease(&mut self, job: &Job) {
        let Some(lease) = job.active_lease() else { return };
        self.unindex_worker(&lease.worker);
        if let Some(held) = self.leases_by_worker.get_mut(&lease.worker) {
            held.remove(&job.id);
            if held.is_empty() {
                self.leases_by_worker.remove(&lease.worker);
            }
        }
        if let Some(number) = self.running_by_user.get_mut(&job.submitted_by) {
            *number -= 1;
            if *number == 0 {
                self.running_by_user.remove(&job.submitted_by);
            }
        }
        self.index_worker(&lease.worker);
    }

    /// Removes a worker from the planning order, before its sort key changes.
    fn unindex_worker(&mut self, id: &WorkerId) {
        if let Some((sort_key, has_capacity)) = self.order_entry(id) {
            self.worker_order.remove(&sort_key);
            self.workers_with_capacity -= usize::from(has_capacity);
        }
    }

    fn index_worker(&mut self, id: &WorkerId) {
        if let Some((sort_key, has_capacity)) = self.order_entry(id) {
            self.worker_order.insert(sort_key);
            self.workers_with_capacity += usize::from(has_capacity);
        }
    }

    fn order_entry(&self, id: &WorkerId) -> Option<(WorkerOrderKey, bool)> {
        let worker = &self.workers.get(id)?.worker;
        let jobs = self.leases_by_worker.get(id).map_or(0, BTreeSet::len);
        Some((worker_order_key(worker, jobs), has_capacity(worker, jobs)))
    }

    pub fn worker(&self, id: &WorkerId) -> Option<&Arc<StoredWorker>> {
        self.workers.get(id)
    }

    pub fn worker_by_token(&self, digest: &str) -> Option<&Arc<StoredWorker>> {
        self.workers.get(self.workers_by_token.get(digest)?)
    }

    pub fn access(&self) -> &AccessState {
        &self.access
    }

    /// A job that has not ended; one that is missing here may have ended.
    pub fn job(&self, id: &JobId) -> Option<&Arc<Job>> {
        self.jobs.get(id)
    }

    /// The jobs with a lease, of one worker or of all, ordered by submit.
    pub fn leased_jobs(&self, worker: Option<&WorkerId>) -> Vec<&Job> {
        let job = |id: &JobId| self.jobs.get(id).map(Arc::as_ref);
        let mut leased: Vec<&Job> = match worker {
            Some(worker) => self.leases_by_worker.get(worker).into_iter().flatten().filter_map(job).collect(),
            None => self.jobs_with_lease().collect(),
        };
        leased.sort_by_key(|job| (job.submitted_at, &job.id));
        leased
    }

    /// The jobs with a lease on a worker, ordered by submit.
    pub fn jobs_on_worker(&self, worker: &WorkerId) -> Vec<Arc<Job>> {
        let held = self.leases_by_worker.get(worker).into_iter().flatten().filter_map(|id| self.jobs.get(id));
        let mut held: Vec<_> = held.map(Arc::clone).collect();
        held.sort_by_key(|job| (job.submitted_at, job.id.clone()));
        held
    }

    /// The position of a job in the queue, from 1.
    pub fn queue_position(&self, job: &Job) -> u64 {
        self.queue.range(..queue_key(job)).count() as u64 + 1
    }

    pub fn workers(&self) -> impl Iterator<Item = &Arc<StoredWorker>> {
        self.workers.values()
    }

    /// The fleet for planning.
    pub fn planner_fleet(&self, limits: ConcurrencyLimits) -> PlannerFleet<'_> {
        let candidates = self.worker_order.iter().filter_map(|(_, id)| {
            let leases = self
                .leases_by_worker
                .get(id)
                .into_iter()
                .flatten()
                .filter_map(|job| self.jobs.get(job)?.active_lease());
            Some(Candidate::new(&self.workers.get(id)?.worker, leases.map(Lease::gpu_uuids).collect()))
        });
        let running_by_user = self.running_by_user.iter().map(|(user, number)| (user.as_str(), *number)).collect();
        PlannerFleet::from_sorted(self.workers_with_capacity, candidates, running_by_user, limits)
    }

    pub fn waiting_count(&self, user: &str) -> usize {
        self.waiting_by_user.get(user).copied().unwrap_or_default()
    }

    /// The jobs in the queue, in its order. Other jobs may wait too.
    pub fn queued_jobs(&self) -> impl Iterator<Item = &Job> {
        self.queue.iter().filter_map(|(_, _, id)| self.jobs.get(id)).map(Arc::as_ref)
    }

    /// The number of jobs with a lease on a worker.
    pub fn lease_count(&self, worker: &WorkerId) -> usize {
        self.leases_by_worker.get(worker).map_or(0, BTreeSet::len)
    }

    /// The jobs that have not ended, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// The jobs with a lease.
    pub fn jobs_with_lease(&self) -> impl Iterator<Item = &Job> {
        self.leases_by_worker.values().flatten().filter_map(|id| self.jobs.get(id)).map(Arc::as_ref)
    }
}
