//! All that lives, in memory: every worker, every job that has not ended, and who may come in.
//!
//! The writer keeps one for its decisions; another, on the [board](super::board), says what was committed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Job, Lease, State};
use app::domain::matching::{Candidate, has_room};
use app::domain::plan::{self, Fleet, Limits};
use app::domain::time::Timestamp;
use app::domain::worker::Worker;
use app::domain::worker::credential::Credential;

use super::people::{AccessChange, People};
use super::workers::{Seen, StoredWorker};

/// See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    workers: BTreeMap<WorkerId, Arc<StoredWorker>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    /// The jobs that wait, by rank.
    queue: BTreeSet<Rank>,
    /// The workers, by standing.
    standing: BTreeSet<Standing>,
    /// How many of them have room for a job.
    with_room: usize,
    /// How many jobs of whom hold a lease.
    running_of: BTreeMap<String, u32>,
    /// How many jobs of whom wait.
    waiting_of: BTreeMap<String, usize>,
    /// The jobs that hold a lease, by worker.
    leases: BTreeMap<WorkerId, BTreeSet<JobId>>,
    /// Whose worker token has this digest.
    tokens: HashMap<String, WorkerId>,
    /// Who may come in.
    people: People,
}

/// The order in which planning takes what waits; see [`plan::rank`].
type Rank = (Reverse<i64>, Timestamp, JobId);

fn rank(job: &Job) -> Rank {
    let (urgency, submitted_at, id) = plan::rank(job);
    (urgency, submitted_at, id.clone())
}

/// The order in which planning asks workers; see [`plan::standing`].
type Standing = ((Reverse<bool>, bool, Reverse<bool>, usize, Timestamp, String), WorkerId);

fn standing(worker: &Worker, jobs: usize) -> Standing {
    let (room, local, has_gpus, gpus, since, name) = plan::standing(worker, jobs);
    ((room, local, has_gpus, gpus, since, name.to_owned()), worker.id.clone())
}

/// The digests by which a credential is found.
fn digests(credential: &Credential) -> impl Iterator<Item = &String> {
    let old = credential.old.as_ref().map(|old| &old.digest);
    let session = credential.session.as_ref().map(|session| &session.digest);
    [Some(&credential.digest), old, session].into_iter().flatten()
}

/// One thing that was written.
#[derive(Debug, Clone)]
pub enum Change {
    /// A worker is like this now.
    Worker(Box<Worker>),
    /// A worker has other tokens.
    Credential(WorkerId, Credential),
    /// A worker was heard of.
    Seen(WorkerId, Seen),
    /// A worker is gone.
    Removed(WorkerId),
    /// A job is like this now.
    Job(Arc<Job>),
    /// Of who may come in.
    Access(AccessChange),
}

impl Known {
    /// What a database says.
    pub fn new(
        workers: impl IntoIterator<Item = StoredWorker>,
        jobs: impl IntoIterator<Item = Job>,
        people: People,
    ) -> Self {
        let mut known = Self { people, ..Self::default() };
        for stored in workers {
            known.put_tokens(&stored);
            known.put_worker(stored);
        }
        for job in jobs {
            known.put_job(Arc::new(job));
        }
        known
    }

    /// Follows what was written.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Worker(worker) => {
                let before = self.workers.get(&worker.id);
                let last_seen = before.and_then(|stored| stored.last_seen);
                let credential = before.map(|stored| Arc::clone(&stored.credential)).unwrap_or_default();
                self.put_worker(StoredWorker { worker: *worker, credential, last_seen });
            }
            Change::Credential(id, credential) => {
                if let Some(stored) = self.workers.get_mut(&id) {
                    let old = std::mem::replace(&mut Arc::make_mut(stored).credential, Arc::new(credential));
                    let stored = Arc::clone(stored);
                    self.drop_tokens(&old);
                    self.put_tokens(&stored);
                }
            }
            Change::Seen(id, seen) => {
                if let Some(stored) = self.workers.get_mut(&id) {
                    let last_seen = stored.last_seen.max(Some(seen));
                    Arc::make_mut(stored).last_seen = last_seen;
                }
            }
            Change::Removed(id) => {
                self.step_out(&id);
                if let Some(gone) = self.workers.remove(&id) {
                    self.drop_tokens(&gone.credential);
                }
            }
            Change::Job(job) => self.put_job(job),
            Change::Access(change) => self.people.apply(change),
        }
    }

    fn put_tokens(&mut self, stored: &StoredWorker) {
        for digest in digests(&stored.credential) {
            self.tokens.insert(digest.clone(), stored.worker.id.clone());
        }
    }

    fn drop_tokens(&mut self, credential: &Credential) {
        for digest in digests(credential) {
            self.tokens.remove(digest);
        }
    }

    fn put_worker(&mut self, stored: StoredWorker) {
        let id = stored.worker.id.clone();
        self.step_out(&id);
        self.workers.insert(id.clone(), Arc::new(stored));
        self.step_in(&id);
    }

    fn put_job(&mut self, job: Arc<Job>) {
        if let Some(before) = self.jobs.remove(&job.id) {
            if self.queue.remove(&rank(&before))
                && let Some(number) = self.waiting_of.get_mut(&before.submitted_by)
            {
                *number -= 1;
                if *number == 0 {
                    self.waiting_of.remove(&before.submitted_by);
                }
            }
            self.release(&before);
        }
        self.hold(&job);
        if matches!(job.state, State::Queued { .. }) {
            self.queue.insert(rank(&job));
            *self.waiting_of.entry(job.submitted_by.clone()).or_default() += 1;
        }
        if !job.has_ended() {
            self.jobs.insert(job.id.clone(), job);
        }
    }

    fn hold(&mut self, job: &Job) {
        let Some(lease) = job.live_lease() else { return };
        self.step_out(&lease.worker);
        self.leases.entry(lease.worker.clone()).or_default().insert(job.id.clone());
        *self.running_of.entry(job.submitted_by.clone()).or_default() += 1;
        self.step_in(&lease.worker);
    }

    fn release(&mut self, job: &Job) {
        let Some(lease) = job.live_lease() else { return };
        self.step_out(&lease.worker);
        if let Some(held) = self.leases.get_mut(&lease.worker) {
            held.remove(&job.id);
            if held.is_empty() {
                self.leases.remove(&lease.worker);
            }
        }
        if let Some(number) = self.running_of.get_mut(&job.submitted_by) {
            *number -= 1;
            if *number == 0 {
                self.running_of.remove(&job.submitted_by);
            }
        }
        self.step_in(&lease.worker);
    }

    /// A worker leaves the order in which planning asks, before anything that its standing depends on changes.
    fn step_out(&mut self, id: &WorkerId) {
        if let Some((standing, room)) = self.stands(id) {
            self.standing.remove(&standing);
            self.with_room -= usize::from(room);
        }
    }

    fn step_in(&mut self, id: &WorkerId) {
        if let Some((standing, room)) = self.stands(id) {
            self.standing.insert(standing);
            self.with_room += usize::from(room);
        }
    }

    fn stands(&self, id: &WorkerId) -> Option<(Standing, bool)> {
        let worker = &self.workers.get(id)?.worker;
        let jobs = self.leases.get(id).map_or(0, BTreeSet::len);
        Some((standing(worker, jobs), has_room(worker, jobs)))
    }

    /// A worker; none if there is none.
    pub fn worker(&self, id: &WorkerId) -> Option<&Arc<StoredWorker>> {
        self.workers.get(id)
    }

    /// Whose worker token has this digest.
    pub fn worker_by_token(&self, digest: &str) -> Option<&Arc<StoredWorker>> {
        self.workers.get(self.tokens.get(digest)?)
    }

    /// Who may come in.
    pub fn people(&self) -> &People {
        &self.people
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

    /// The jobs that hold a lease on a worker, in the order of their submits.
    pub fn held_by(&self, worker: &WorkerId) -> Vec<Arc<Job>> {
        let held = self.leases.get(worker).into_iter().flatten().filter_map(|id| self.jobs.get(id));
        let mut held: Vec<_> = held.map(Arc::clone).collect();
        held.sort_by_key(|job| (job.submitted_at, job.id.clone()));
        held
    }

    /// The place of a job among those that wait, from 1, in the order in which planning takes them.
    pub fn place(&self, job: &Job) -> u64 {
        self.queue.range(..rank(job)).count() as u64 + 1
    }

    /// The workers, by id.
    pub fn workers(&self) -> impl Iterator<Item = &Arc<StoredWorker>> {
        self.workers.values()
    }

    /// The fleet, as planning takes it.
    pub fn fleet(&self, limits: Limits) -> Fleet<'_> {
        let candidates = self.standing.iter().filter_map(|(_, id)| {
            let leases = self.leases.get(id).into_iter().flatten().filter_map(|job| self.jobs.get(job)?.live_lease());
            Some(Candidate::new(&self.workers.get(id)?.worker, leases.map(Lease::held).collect()))
        });
        let running_of = self.running_of.iter().map(|(user, number)| (user.as_str(), *number)).collect();
        Fleet::drawing(self.with_room, candidates, running_of, limits)
    }

    /// How many jobs of a person wait.
    pub fn waiting_of(&self, person: &str) -> usize {
        self.waiting_of.get(person).copied().unwrap_or_default()
    }

    /// The jobs that wait, by rank.
    pub fn waiting(&self) -> impl Iterator<Item = &Job> {
        self.queue.iter().filter_map(|(_, _, id)| self.jobs.get(id)).map(Arc::as_ref)
    }

    /// How many jobs hold a lease on a worker.
    pub fn leases_of(&self, worker: &WorkerId) -> usize {
        self.leases.get(worker).map_or(0, BTreeSet::len)
    }

    /// The jobs that have not ended, by id.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// The jobs that hold a lease.
    pub fn leases(&self) -> impl Iterator<Item = &Job> {
        self.leases.values().flatten().filter_map(|id| self.jobs.get(id)).map(Arc::as_ref)
    }
}
