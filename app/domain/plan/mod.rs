//! Which waiting job goes to which worker.

mod fleet;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub use self::fleet::{Fleet, Limited, Limits, standing};
use super::ids::{JobId, WorkerId};
use super::job::{Job, Spec, State, Target};
use super::labels::Labels;
use super::matching::{Blocker, Candidate, Remedy, blockers, fits, grant};
use super::sandbox::SandboxLevel;
use super::time::{Millis, Timestamp};

/// One point of priority outweighs so much waiting: nothing waits for ever behind what is more urgent.
pub const AGING: Millis = Millis::seconds(3_600);
/// A job that has waited so long keeps the worker it waits for from the jobs behind it.
pub const STARVING: Millis = Millis::seconds(1_800);

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
pub struct Plan<'w> {
    /// The offers to make, in order.
    pub assignments: Vec<Assignment>,
    /// Workers that are kept free, and for which job.
    pub reserved: BTreeMap<WorkerId, JobId>,
    /// The fleet as it is when the offers are made.
    pub fleet: Fleet<'w>,
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
    matches!(job.state, State::Queued { .. }) && job.due().is_none_or(|moment| moment <= now)
}

/// What jobs that ask for the same have in common, as a key.
pub type Class<'w> =
    (Target, &'w Labels, Option<u32>, Option<u64>, Option<&'w str>, SandboxLevel, bool, [&'w [String]; 2]);

/// What a job asks for, as far as it decides which workers it fits.
pub fn class(spec: &Spec) -> Class<'_> {
    let demand = &spec.demand;
    let vram = demand.min_vram_gb.map(f64::to_bits);
    let accelerator = demand.accelerator.as_deref();
    (
        spec.target,
        &demand.labels,
        demand.gpu_count,
        vram,
        accelerator,
        demand.sandbox,
        spec.exclusive,
        [&spec.files, &spec.paths],
    )
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
    /// How many workers have room for a job; without any, nothing is left to decide.
    open: usize,
    searches: HashMap<Class<'w>, Search>,
}

impl<'w> Round<'w> {
    fn new(fleet: Fleet<'w>) -> Self {
        let open = fleet.with_room;
        let plan = Plan { assignments: Vec::new(), reserved: BTreeMap::new(), fleet };
        Self { plan, open, searches: HashMap::new() }
    }

    fn place(&mut self, job: &'w Job, now: Timestamp) {
        let Plan { assignments, reserved, fleet } = &mut self.plan;
        if fleet.limited(&job.submitted_by).is_some() {
            return;
        }
        let search = self.searches.entry(class(&job.spec)).or_default();
        while search.next < fleet.with_room
            && let Some(candidate) = fleet.nth(search.next)
        {
            let open = !reserved.contains_key(&candidate.worker.id) && fits(&job.spec, candidate);
            if let Some(gpus) = open.then(|| grant(&job.spec.demand, candidate)).flatten() {
                let granted = gpus.iter().map(|uuid| (*uuid).to_owned()).collect();
                candidate.held.push(gpus);
                self.open -= usize::from(!candidate.has_room());
                assignments.push(Assignment {
                    job: job.id.clone(),
                    worker: candidate.worker.id.clone(),
                    gpus: granted,
                });
                fleet.holds_one_more(&job.submitted_by);
                return;
            }
            search.next += 1;
        }
        if now - job.submitted_at < STARVING {
            return;
        }
        while let Some(candidate) = fleet.nth(search.next_reservable) {
            let id = &candidate.worker.id;
            search.next_reservable += 1;
            if !reserved.contains_key(id) && blockers(&job.spec, candidate).all(|b| b.remedy() == Remedy::Time) {
                reserved.insert(id.clone(), job.id.clone());
                return;
            }
        }
    }
}

impl Plan<'_> {
    /// Everything that keeps a job from a worker after this round.
    pub fn blockers(&self, job: &Job, candidate: &Candidate<'_>) -> Vec<Blocker> {
        let reserved = self.reserved.get(&candidate.worker.id).filter(|holder| **holder != job.id);
        let reserved = reserved.map(|holder| Blocker::Reserved { job: holder.clone() });
        blockers(&job.spec, candidate).chain(reserved).collect()
    }
}
