//! The queued jobs in memory, and what the last planning round found about them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::job_share::JobClass;
use app::domain::plan::{self, JobQueue, QueuedJob, UnmatchedKinds, job_kind};
use app::domain::time::Timestamp;
use slab::Slab;

/// The order of the queue of a share; see [`plan::job_sort_key`].
type QueueKey = (Reverse<i64>, Timestamp, JobId);

fn queue_key(job: &Job) -> QueueKey {
    let (urgency, submitted_at, id) = plan::job_sort_key(job);
    (urgency, submitted_at, id.clone())
}

/// Whose queue it is; see [`plan::queue_of`].
type QueueOf = (JobClass, String, String);

fn queue_of(job: &Job) -> QueueOf {
    let (class, team, user) = plan::queue_of(job);
    (class, team.to_owned(), user.to_owned())
}

/// The queued jobs by share, with the numbers of their kinds.
#[derive(Debug, Clone, Default)]
pub struct QueueIndex {
    shares: BTreeMap<QueueOf, BTreeMap<QueueKey, (usize, Arc<Job>)>>,
    /// The number of queued jobs of each kind.
    kinds: Slab<usize>,
    numbers: HashMap<KindOf, usize>,
}

impl QueueIndex {
    pub fn insert(&mut self, job: &Arc<Job>) {
        let kinds = &mut self.kinds;
        let number = *self.numbers.entry(KindOf(Arc::clone(job))).or_insert_with(|| kinds.insert(0));
        kinds[number] += 1;
        self.shares.entry(queue_of(job)).or_default().insert(queue_key(job), (number, Arc::clone(job)));
    }

    /// Removes a job; returns the number of its kind if it was the last one of it.
    pub fn remove(&mut self, job: &Job) -> Option<usize> {
        let of = queue_of(job);
        let share = self.shares.get_mut(&of)?;
        let (number, queued) = share.remove(&queue_key(job))?;
        if share.is_empty() {
            self.shares.remove(&of);
        }
        self.kinds[number] -= 1;
        (self.kinds[number] == 0).then(|| {
            self.kinds.remove(number);
            self.numbers.remove(&KindOf(queued));
            number
        })
    }

    /// The position of a job if all jobs are of one share, from 1.
    pub fn position_in_only_share(&self, job: &Job) -> Option<u64> {
        let is_only = self.shares.keys().all(|of| *of == queue_of(job));
        let before = || self.shares.values().flat_map(|jobs| jobs.range(..queue_key(job))).count() as u64;
        is_only.then(|| before() + 1)
    }

    pub fn contains(&self, job: &Job) -> bool {
        self.shares.get(&queue_of(job)).is_some_and(|jobs| jobs.contains_key(&queue_key(job)))
    }

    /// The jobs, by share.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.shares.values().flat_map(BTreeMap::values).map(|(_, job)| &**job)
    }

    pub fn for_planning(&self) -> JobQueue<'_> {
        let shares = self.shares.iter().map(|((class, team, user), jobs)| {
            let jobs = jobs.values().map(|(kind, job)| QueuedJob { job, kind: *kind });
            plan::share_queue((*class, team, user), jobs)
        });
        JobQueue::from_sorted(shares.collect(), self.kinds.len())
    }
}

/// Compares the jobs; the numbers of kinds depend on the order of changes.
impl PartialEq for QueueIndex {
    fn eq(&self, other: &Self) -> bool {
        self.jobs().eq(other.jobs())
    }
}

/// A job as a key by its kind.
#[derive(Debug, Clone)]
struct KindOf(Arc<Job>);

impl PartialEq for KindOf {
    fn eq(&self, other: &Self) -> bool {
        job_kind(&self.0) == job_kind(&other.0)
    }
}

impl Eq for KindOf {}

impl Hash for KindOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        job_kind(&self.0).hash(state);
    }
}

/// More changed workers are not remembered: a round with all of them is as fast.
const MAX_CHANGED: usize = 4_096;

/// The result of the last planning round. It belongs to one state and its changes since; a copy of the state begins
/// without it.
#[derive(Debug, Default)]
pub struct LastRound(Mutex<RoundResult>);

#[derive(Debug, Default)]
pub struct RoundResult {
    pub unmatched: UnmatchedKinds,
    /// The slots of workers that have changed since; a slot may be empty, or in use by another worker.
    pub changed: Vec<usize>,
}

impl LastRound {
    /// Takes the result; until another one is set, there is none.
    pub fn take(&self) -> RoundResult {
        std::mem::take(&mut *self.0.lock().expect("no panic while it is held"))
    }

    pub fn set(&self, unmatched: UnmatchedKinds) {
        *self.0.lock().expect("no panic while it is held") = RoundResult { unmatched, changed: Vec::new() };
    }

    pub fn worker_changed(&mut self, slot: usize) {
        let result = self.0.get_mut().expect("no panic while it is held");
        if result.unmatched.is_empty() {
            return;
        }
        if result.changed.len() >= MAX_CHANGED {
            *result = RoundResult::default();
        } else if result.changed.last() != Some(&slot) {
            result.changed.push(slot);
        }
    }

    pub fn kind_removed(&mut self, kind: usize) {
        self.0.get_mut().expect("no panic while it is held").unmatched.remove(kind);
    }
}

impl Clone for LastRound {
    fn clone(&self) -> Self {
        Self::default()
    }
}
