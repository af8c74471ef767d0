//! The live state in memory: all workers, all jobs that have not ended, users and their credentials.
//!
//! The writer has one for its decisions; another one, the [committed snapshot](super::snapshot), is the state of the
//! last commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, PreemptedAttempt};
use app::domain::matching::Candidate;
use app::domain::plan::{self, Assignment, ConcurrencyLimits, JobQueue, PlannerFleet, fleet_size};
use app::domain::shares::FleetSize;
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::domain::worker::credential::WorkerCredential;
use itertools::Itertools;
use slab::Slab;

use crate::store::cache::access::{AccessChange, AccessState};
use crate::store::cache::fleet_worker::{FleetWorker, WorkerOrderKey, no_alert_before};
use crate::store::cache::queue::{LastRound, QueueIndex};
use crate::store::cache::shares::{ShareChange, ShareState};
use crate::store::workers::{LastContact, StoredWorker};

#[derive(Debug, Clone, Default)]
pub struct FleetState {
    workers: Slab<FleetWorker>,
    worker_slots: BTreeMap<WorkerId, usize>,
    /// The slots of workers by sort key.
    worker_order: BTreeMap<WorkerOrderKey, usize>,
    /// The number of workers that have capacity for a job.
    workers_with_capacity: usize,
    jobs: BTreeMap<JobId, Arc<Job>>,
    queue: QueueIndex,
    last_round: LastRound,
    /// The number of jobs with a lease, by user.
    running_by_user: BTreeMap<String, u32>,
    /// The number of jobs that wait, in the queue or not, by user.
    waiting_by_user: BTreeMap<String, usize>,
    /// The jobs with a lease, by worker, each ordered by submit; also of workers whose row cannot be read.
    leases_by_worker: BTreeMap<WorkerId, Vec<Arc<Job>>>,
    /// Workers by the digest of their token.
    workers_by_token: HashMap<String, WorkerId>,
    /// The waiting jobs for which others are stopped.
    preempting: BTreeMap<JobId, Arc<Job>>,
    /// Users and their credentials.
    access: AccessState,
    /// What the connected workers have.
    size: FleetSize,
    shares: ShareState,
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
    Share(ShareChange),
}

impl FleetState {
    /// Builds the state from the rows of a database.
    pub fn new(
        workers: impl IntoIterator<Item = StoredWorker>,
        jobs: impl IntoIterator<Item = Job>,
        access: AccessState,
        shares: ShareState,
    ) -> Self {
        let mut fleet_state = Self { access, shares, ..Self::default() };
        for stored in workers {
            fleet_state.index_tokens(&stored);
            fleet_state.put_worker(stored);
        }
        // Usage is counted in the order in which leases began.
        for job in jobs.into_iter().sorted_by_key(|job| job.active_lease().map(|lease| lease.since)) {
            fleet_state.put_job(Arc::new(job));
        }
        fleet_state
    }

    pub fn apply(&mut self, change: StateChange) {
        match change {
            StateChange::Worker(worker) => {
                let before = self.worker(&worker.id);
                let last_seen = before.and_then(|stored| stored.last_seen);
                let credential = before.map(|stored| Arc::clone(&stored.credential)).unwrap_or_default();
                self.put_worker(StoredWorker { worker: *worker, credential, last_seen });
            }
            StateChange::Credential(id, credential) => {
                if let Some(worker) = self.fleet_worker_mut(&id) {
                    let stored = Arc::make_mut(&mut worker.stored);
                    let old = std::mem::replace(&mut stored.credential, Arc::new(credential));
                    worker.no_alert_before = no_alert_before(stored);
                    let stored = Arc::clone(&worker.stored);
                    self.unindex_tokens(&old);
                    self.index_tokens(&stored);
                }
            }
            StateChange::Contact(id, contact) => {
                if let Some(worker) = self.fleet_worker_mut(&id) {
                    let stored = Arc::make_mut(&mut worker.stored);
                    stored.last_seen = stored.last_seen.max(Some(contact));
                }
            }
            StateChange::WorkerRemoved(id) => self.remove_worker(&id),
            StateChange::Job(job) => self.put_job(job),
            StateChange::JobRemoved(id) => self.remove_job(&id),
            StateChange::Access(change) => self.access.apply(change),
            StateChange::Share(change) => self.shares.apply(change),
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

    /// For changes of what no index depends on, except the credential.
    fn fleet_worker_mut(&mut self, id: &WorkerId) -> Option<&mut FleetWorker> {
        self.workers.get_mut(*self.worker_slots.get(id)?)
    }

    fn put_worker(&mut self, stored: StoredWorker) {
        let id = stored.worker.id.clone();
        let jobs = self.leases_by_worker.get(&id).cloned().unwrap_or_default();
        let worker = FleetWorker::new(Arc::new(stored), jobs);
        if let Some(slot) = self.worker_slots.get(&id) {
            return self.replace_worker(*slot, worker);
        }
        let (key, has_capacity) = (worker.order_key(), worker.has_capacity());
        let slot = self.workers.insert(worker);
        self.worker_slots.insert(id, slot);
        self.worker_order.insert(key, slot);
        self.workers_with_capacity += usize::from(has_capacity);
        self.size.add(fleet_size(self.workers[slot].worker()));
        self.last_round.worker_changed(slot);
    }

    fn replace_worker(&mut self, slot: usize, worker: FleetWorker) {
        let before = std::mem::replace(&mut self.workers[slot], worker);
        let worker = &self.workers[slot];
        let (old_key, key) = (before.order_key(), worker.order_key());
        if old_key != key {
            self.worker_order.remove(&old_key);
            self.worker_order.insert(key, slot);
        }
        self.workers_with_capacity += usize::from(worker.has_capacity());
        self.workers_with_capacity -= usize::from(before.has_capacity());
        self.size.remove(fleet_size(before.worker()));
        self.size.add(fleet_size(worker.worker()));
        self.last_round.worker_changed(slot);
    }

    fn remove_worker(&mut self, id: &WorkerId) {
        let Some(slot) = self.worker_slots.remove(id) else { return };
        let removed = self.workers.remove(slot);
        self.worker_order.remove(&removed.order_key());
        self.workers_with_capacity -= usize::from(removed.has_capacity());
        self.size.remove(fleet_size(removed.worker()));
        self.unindex_tokens(&removed.stored.credential);
    }

    fn remove_job(&mut self, id: &JobId) {
        let Some(removed) = self.jobs.remove(id) else { return };
        self.shares.job_changed(Some(&removed), None);
        self.unindex_job(&removed);
        self.update_holder(&removed);
    }

    fn put_job(&mut self, job: Arc<Job>) {
        let before = self.jobs.remove(&job.id);
        if let Some(before) = &before {
            self.unindex_job(before);
        }
        self.shares.job_changed(before.as_deref(), Some(&job));
        self.index_job(&job);
        if let Some(before) = before.filter(|before| holder(before) != holder(&job)) {
            self.update_holder(&before);
        }
        self.update_holder(&job);
        if !job.has_ended() {
            self.jobs.insert(job.id.clone(), job);
        }
    }

    fn index_job(&mut self, job: &Arc<Job>) {
        if job.is_queued() {
            self.queue.insert(job);
        }
        if job.preemption().is_some() {
            self.preempting.insert(job.id.clone(), Arc::clone(job));
        }
        if job.state.waiting().is_some() {
            *self.waiting_by_user.entry(job.submitted_by.clone()).or_default() += 1;
        }
        if let Some(lease) = job.active_lease() {
            let leases = self.leases_by_worker.entry(lease.worker.clone()).or_default();
            let at = leases.partition_point(|other| (other.submitted_at, &other.id) < (job.submitted_at, &job.id));
            leases.insert(at, Arc::clone(job));
            *self.running_by_user.entry(job.submitted_by.clone()).or_default() += 1;
        }
    }

    fn unindex_job(&mut self, job: &Job) {
        if let Some(kind) = self.queue.remove(job) {
            self.last_round.kind_removed(kind);
        }
        self.preempting.remove(&job.id);
        if job.state.waiting().is_some() {
            decrement(&mut self.waiting_by_user, &job.submitted_by);
        }
        if let Some(lease) = job.active_lease() {
            if let Some(leases) = self.leases_by_worker.get_mut(&lease.worker) {
                leases.retain(|other| other.id != job.id);
                if leases.is_empty() {
                    self.leases_by_worker.remove(&lease.worker);
                }
            }
            decrement(&mut self.running_by_user, &job.submitted_by);
        }
    }

    /// Updates the worker that holds the lease of a job.
    fn update_holder(&mut self, job: &Job) {
        let slot = holder(job).and_then(|worker| self.worker_slots.get(worker));
        if let Some(slot) = slot.copied() {
            let stored = Arc::clone(&self.workers[slot].stored);
            let jobs = self.leases_by_worker.get(&stored.worker.id).cloned().unwrap_or_default();
            self.replace_worker(slot, FleetWorker::new(stored, jobs));
        }
    }

    pub fn fleet_worker(&self, id: &WorkerId) -> Option<&FleetWorker> {
        self.workers.get(*self.worker_slots.get(id)?)
    }
    pub fn worker(&self, id: &WorkerId) -> Option<&Arc<StoredWorker>> {
        self.fleet_worker(id).map(|worker| &worker.stored)
    }

    pub fn worker_by_token(&self, digest: &str) -> Option<&Arc<StoredWorker>> {
        self.worker(self.workers_by_token.get(digest)?)
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
        if let Some(worker) = worker {
            return self.leases_by_worker.get(worker).into_iter().flatten().map(Arc::as_ref).collect();
        }
        let mut leased: Vec<&Job> = self.jobs_with_lease().collect();
        leased.sort_by_key(|job| (job.submitted_at, &job.id));
        leased
    }

    /// The positions of queued jobs, from 1: in the order in which they would start on a free fleet.
    pub fn queue_positions(&self, jobs: &[&Job], now: Timestamp) -> HashMap<JobId, u64> {
        if let [job] = jobs
            && let Some(position) = self.queue.position_in_only_share(job)
        {
            return HashMap::from([(job.id.clone(), position)]);
        }
        let queue = if jobs.iter().all(|job| self.queue.contains(job)) {
            self.queue.for_planning()
        } else {
            let others = self.queue.jobs().filter(|queued| !jobs.iter().any(|job| job.id == queued.id));
            JobQueue::new(others.chain(jobs.iter().copied()))
        };
        let wanted: HashSet<&JobId> = jobs.iter().map(|job| &job.id).collect();
        let positions = (1..).zip(queue.in_order(self.shares.tree(self.size, now)));
        let positions = positions.filter(|(_, job)| wanted.contains(&job.id)).take(wanted.len());
        positions.map(|(position, job)| (job.id.clone(), position)).collect()
    }

    /// The queued jobs in the order in which they would start on a free fleet.
    pub fn queue_in_order(&self, now: Timestamp) -> impl Iterator<Item = &Job> {
        self.queue.for_planning().in_order(self.shares.tree(self.size, now))
    }

    /// The waiting jobs for which others are stopped.
    pub fn preempting_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.preempting.values()
    }

    /// The job for which a job is stopped, and what is stopped.
    pub fn preempted_by(&self, id: &JobId) -> Option<(&Arc<Job>, &PreemptedAttempt)> {
        self.preempting.values().find_map(|job| {
            let attempt = job.preemption()?.attempts.iter().find(|attempt| attempt.job == *id)?;
            Some((job, attempt))
        })
    }

    /// Teams, and what they use.
    pub const fn shares(&self) -> &ShareState {
        &self.shares
    }

    /// What the connected workers have.
    pub const fn size(&self) -> FleetSize {
        self.size
    }

    /// All workers, by id.
    pub fn workers(&self) -> impl Iterator<Item = &FleetWorker> {
        self.worker_slots.values().map(|slot| &self.workers[*slot])
    }

    /// The workers that have jobs, as planning sees them.
    pub fn workers_with_jobs(&self) -> impl Iterator<Item = Candidate<'_>> {
        self.leases_by_worker.keys().filter_map(|id| self.fleet_worker(id)).map(FleetWorker::candidate)
    }

    /// The fleet for planning.
    pub fn planner_fleet(&self, limits: ConcurrencyLimits, now: Timestamp) -> PlannerFleet<'_> {
        let candidates = self.worker_order.values().map(|slot| self.workers[*slot].candidate());
        let running_by_user = self.running_by_user.iter().map(|(user, number)| (user.as_str(), *number)).collect();
        let fleet = PlannerFleet::from_sorted(self.workers_with_capacity, candidates, running_by_user, limits);
        let reserved = self.preempting.values().filter_map(|job| Some((job.preemption()?, &**job)));
        let reserved = reserved.filter(|(preemption, _)| preemption.holds(now));
        let reserved = reserved.map(|(preemption, job)| (&preemption.worker, job)).collect();
        fleet.with_shares(self.shares.tree(self.size, now)).with_reservations(reserved)
    }

    /// Assigns queued jobs to workers of this fleet, and remembers the result for the next time.
    pub fn assign_jobs<'k>(&'k self, fleet: PlannerFleet<'k>, now: Timestamp) -> Vec<Assignment> {
        let last = self.last_round.take();
        let changed = last.changed.iter().unique().filter_map(|slot| self.workers.get(*slot));
        let changed = changed.filter(|worker| worker.has_capacity()).sorted_by_cached_key(|worker| worker.order_key());
        let fleet = fleet.since_last_round(last.unmatched, changed.map(FleetWorker::candidate));
        let plan = plan::plan(self.queue.for_planning(), fleet, now);
        self.last_round.set(plan.unmatched);
        plan.assignments
    }

    pub fn waiting_count(&self, user: &str) -> usize {
        self.waiting_by_user.get(user).copied().unwrap_or_default()
    }

    /// The jobs in the queue, by share. Other jobs may wait too.
    pub fn queued_jobs(&self) -> impl Iterator<Item = &Job> {
        self.queue.jobs()
    }

    /// The jobs that have not ended, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// The jobs with a lease.
    pub fn jobs_with_lease(&self) -> impl Iterator<Item = &Job> {
        self.leases_by_worker.values().flatten().map(Arc::as_ref)
    }
}

/// Compares the contents; slots depend on the order of changes.
impl PartialEq for FleetState {
    fn eq(&self, other: &Self) -> bool {
        let Self { workers: _, worker_slots: _, worker_order, workers_with_capacity, jobs, queue, .. } = self;
        let Self { running_by_user, waiting_by_user, leases_by_worker, workers_by_token, access, size, shares, .. } =
            self;
        self.workers().eq(other.workers())
            && worker_order.keys().eq(other.worker_order.keys())
            && (workers_with_capacity, jobs, queue) == (&other.workers_with_capacity, &other.jobs, &other.queue)
            && (running_by_user, waiting_by_user) == (&other.running_by_user, &other.waiting_by_user)
            && (leases_by_worker, workers_by_token) == (&other.leases_by_worker, &other.workers_by_token)
            && (access, size, shares) == (&other.access, &other.size, &other.shares)
    }
}

/// The worker that holds the lease of a job.
fn holder(job: &Job) -> Option<&WorkerId> {
    job.active_lease().map(|lease| &lease.worker)
}

fn decrement<N: Copy + PartialEq + std::ops::SubAssign + From<u8>>(counts: &mut BTreeMap<String, N>, user: &str) {
    if let Some(count) = counts.get_mut(user) {
        *count -= N::from(1);
        if *count == N::from(0) {
            counts.remove(user);
        }
    }
}
