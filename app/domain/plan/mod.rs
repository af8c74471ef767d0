//! Which waiting job goes to which worker.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::ids::{JobId, WorkerId};
use super::job::{Job, Spec, State, Target};
use super::labels::Labels;
use super::matching::{Blocker, Candidate, Remedy, blockers, fits, grant};
use super::time::{Millis, Timestamp};
use super::worker::Worker;

/// One point of priority outweighs so much waiting: nothing waits for ever behind what is more urgent.
pub const AGING: Millis = Millis::seconds(3_600);
/// A job that has waited so long keeps the worker it waits for from the jobs behind it.
pub const STARVING: Millis = Millis::seconds(1_800);

/// How many jobs may hold a lease at once; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// In all.
    pub jobs: Option<u32>,
    /// Of one person.
    pub jobs_per_user: Option<u32>,
}

/// What the planner plans with.
#[derive(Debug, Clone)]
pub struct Fleet<'w> {
    /// Every worker, with what its leases hold.
    pub candidates: Vec<Candidate<'w>>,
    /// How many jobs hold a lease.
    running: u32,
    /// How many of whom.
    running_of: HashMap<&'w str, u32>,
    limits: Limits,
}

/// One job to offer to one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// The worker.
    pub worker: WorkerId,
    /// UUIDs of the GPUs it gets.
    pub gpus: Vec<String>,
}

/// What came of a round of planning.
#[derive(Debug, Clone)]
pub struct Plan<'w> {
    /// The offers to make, in order.
    pub assignments: Vec<Assignment>,
    /// Workers that are kept free, and for which job.
    pub reserved: BTreeMap<WorkerId, JobId>,
    /// The fleet as it is when the offers are made.
    pub fleet: Fleet<'w>,
}

/// A limit that a job has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// So many jobs hold a lease in all.
    InAll(u32),
    /// So many jobs of its submitter hold one.
    PerUser(u32),
}

impl<'w> Fleet<'w> {
    /// Workers, and the jobs that hold a lease on any of them.
    pub fn new(
        workers: impl IntoIterator<Item = &'w Worker>,
        leased: impl IntoIterator<Item = &'w Job>,
        limits: Limits,
    ) -> Self {
        let mut held: HashMap<&WorkerId, Vec<Vec<&'w str>>> = HashMap::new();
        let mut running_of: HashMap<&str, u32> = HashMap::new();
        let mut running = 0;
        for job in leased {
            let Some(lease) = job.live_lease() else { continue };
            held.entry(&lease.worker).or_default().push(lease.gpus.iter().map(String::as_str).collect());
            *running_of.entry(&job.submitted_by).or_default() += 1;
            running += 1;
        }
        let candidate = |worker: &'w Worker| Candidate::new(worker, held.remove(&worker.id).unwrap_or_default());
        Self { candidates: workers.into_iter().map(candidate).collect(), running, running_of, limits }
    }

    /// The same, with no label counting that an agent reported.
    #[must_use]
    pub fn ignoring_reported_labels(mut self) -> Self {
        self.candidates.iter_mut().for_each(|candidate| candidate.reported = false);
        self
    }

    /// Which limit keeps one more job of this person back.
    pub fn limited(&self, user: &str) -> Option<Limited> {
        let of_user = self.running_of.get(user).copied().unwrap_or(0);
        let in_all = self.limits.jobs.filter(|limit| self.running >= *limit).map(Limited::InAll);
        in_all.or(self.limits.jobs_per_user.filter(|limit| of_user >= *limit).map(Limited::PerUser))
    }
}

/// Assigns waiting jobs: by priority, then age. A job that fits nowhere does not keep back those behind it, except that
/// one that has waited too long keeps one worker that it would fit.
///
/// `waiting` comes by [`rank`], and is not looked at further than there is room: often thousands wait, and a few workers
/// have any. What is not queued, or not due, is passed over.
pub fn plan<'w>(waiting: impl IntoIterator<Item = &'w Job>, fleet: Fleet<'w>, now: Timestamp) -> Plan<'w> {
    let mut round = Round::new(fleet);
    let mut due = waiting.into_iter().filter(|job| is_due(job, now));
    while round.open > 0
        && let Some(job) = due.next()
    {
        round.place(job, now);
    }
    round.plan
}

/// What comes first has the smaller rank.
pub fn rank(job: &Job) -> (Reverse<i64>, Timestamp, &JobId) {
    (Reverse(urgency(job)), job.submitted_at, &job.id)
}

/// More is earlier; of the same urgency the older comes first. It does not depend on the time: all that wait grow older
/// alike.
pub fn urgency(job: &Job) -> i64 {
    i64::from(job.priority) * AGING.0 - job.submitted_at.0
}

fn is_due(job: &Job, now: Timestamp) -> bool {
    matches!(job.state, State::Queued { not_before, .. } if not_before.is_none_or(|moment| moment <= now))
}

/// Remote before local, those with GPUs before those without, small hosts before large ones, the longest idle first.
fn preference<'c>(candidate: &'c Candidate<'_>) -> (bool, Reverse<bool>, usize, Timestamp, &'c str) {
    let worker = candidate.worker;
    let gpus = worker.capability().map_or(0, |capability| capability.gpus.len());
    (worker.local, Reverse(gpus > 0), gpus, worker.link_since(), &worker.name)
}

/// What jobs that ask for the same have in common, as a key.
type Class<'w> = (Target, &'w Labels, Option<u32>, Option<u64>, Option<&'w str>);

fn class(spec: &Spec) -> Class<'_> {
    let demand = &spec.demand;
    let vram = demand.min_vram_gb.map(f64::to_bits);
    (spec.target, &demand.labels, demand.gpu_count, vram, demand.accelerator.as_deref())
}

/// How far the search has come for the jobs of one class. During a round a worker only ever gets fuller: one that did
/// not fit will not fit the next job of the class either, so that no worker is looked at twice.
#[derive(Default)]
struct Search {
    next: usize,
    next_reservable: usize,
}

struct Round<'w> {
    plan: Plan<'w>,
    /// Indices of candidates, the preferred ones first.
    preferred: Vec<usize>,
    /// How many candidates have room for a job; without any, nothing is left to decide.
    open: usize,
    searches: HashMap<Class<'w>, Search>,
}

impl<'w> Round<'w> {
    fn new(fleet: Fleet<'w>) -> Self {
        let mut preferred: Vec<usize> = (0..fleet.candidates.len()).collect();
        preferred.sort_by_cached_key(|index| preference(&fleet.candidates[*index]));
        let open = fleet.candidates.iter().filter(|candidate| has_room(candidate)).count();
        let plan = Plan { assignments: Vec::new(), reserved: BTreeMap::new(), fleet };
        Self { plan, preferred, open, searches: HashMap::new() }
    }

    fn place(&mut self, job: &'w Job, now: Timestamp) {
        let Plan { assignments, reserved, fleet } = &mut self.plan;
        if fleet.limited(&job.submitted_by).is_some() {
            return;
        }
        let search = self.searches.entry(class(&job.spec)).or_default();
        while let Some(index) = self.preferred.get(search.next) {
            let candidate = &mut fleet.candidates[*index];
            let open = !reserved.contains_key(&candidate.worker.id) && fits(&job.spec, candidate);
            if let Some(gpus) = open.then(|| grant(&job.spec.demand, candidate)).flatten() {
                let granted = gpus.iter().map(|uuid| (*uuid).to_owned()).collect();
                candidate.held.push(gpus);
                self.open -= usize::from(!has_room(candidate));
                fleet.running += 1;
                *fleet.running_of.entry(&job.submitted_by).or_default() += 1;
                assignments.push(Assignment {
                    job: job.id.clone(),
                    worker: candidate.worker.id.clone(),
                    gpus: granted,
                });
                return;
            }
            search.next += 1;
        }
        if now - job.submitted_at < STARVING {
            return;
        }
        while let Some(index) = self.preferred.get(search.next_reservable) {
            let candidate = &fleet.candidates[*index];
            let id = &candidate.worker.id;
            search.next_reservable += 1;
            if !reserved.contains_key(id) && blockers(&job.spec, candidate).all(|b| b.remedy() == Remedy::Time) {
                reserved.insert(id.clone(), job.id.clone());
                return;
            }
        }
    }
}

/// Whether a worker listens and takes one more job.
fn has_room(candidate: &Candidate<'_>) -> bool {
    let listens = candidate.worker.stream().is_some() && candidate.worker.drain.is_none();
    listens && candidate.worker.capability().is_some_and(|c| candidate.held.len() < c.max_jobs as usize)
}

impl Plan<'_> {
    /// Everything that keeps a job from a worker after this round.
    pub fn blockers(&self, job: &Job, candidate: &Candidate<'_>) -> Vec<Blocker> {
        let reserved = self.reserved.get(&candidate.worker.id).filter(|holder| **holder != job.id);
        let reserved = reserved.map(|holder| Blocker::Reserved { job: holder.clone() });
        blockers(&job.spec, candidate).chain(reserved).collect()
    }
}
