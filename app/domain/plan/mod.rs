//! Assigns queued jobs to workers.

mod fleet;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub use self::fleet::{ConcurrencyLimits, PlannerFleet, ReachedLimit, worker_sort_key};
use super::ids::{JobId, WorkerId};
use super::job::{Job, JobSpec, JobTarget};
use super::labels::Labels;
use super::matching::{Blocker, Candidate, Remedy, blockers, fits, grant_gpus};
use super::sandbox::SandboxLevel;
use super::time::{Millis, Timestamp};

/// Waiting time that counts as much as one point of priority, so that low-priority jobs do not wait forever.
pub const AGING_PER_POINT: Millis = Millis::from_secs(3_600);
/// A job that has waited this long reserves a worker.
pub const STARVATION_AFTER: Millis = Millis::from_secs(1_800);

/// An offer: a job for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// The worker.
    pub worker: WorkerId,
    /// UUIDs of the allocated GPUs.
    pub gpus: Vec<String>,
}

/// The result of a planning round.
pub struct AssignmentPlan<'w> {
    /// The offers to make, in order.
    pub assignments: Vec<Assignment>,
    /// Reserved workers, and the job that each is reserved for.
    pub reserved: BTreeMap<WorkerId, JobId>,
    /// The fleet after the offers.
    pub fleet: PlannerFleet<'w>,
}

/// Assigns queued jobs by priority, then age. A job that fits no worker does not block later jobs, except that a job
/// that has waited too long reserves one worker that it could use.
///
/// `waiting` is sorted by [`job_sort_key`] and is read only while workers have capacity: often thousands of jobs wait
/// for a few workers. Jobs that are not queued or not yet eligible are skipped.
pub fn plan<'w>(
    waiting: impl IntoIterator<Item = &'w Job>,
    fleet: PlannerFleet<'w>,
    now: Timestamp,
) -> AssignmentPlan<'w> {
    let mut round = PlanningRound::new(fleet);
    let mut due = waiting.into_iter().filter(|job| is_due(job, now));
    while round.open_workers > 0
        && let Some(job) = due.next()
    {
        round.assign(job, now);
    }
    round.plan
}

/// The sort key of a job; smaller keys come first.
pub fn job_sort_key(job: &Job) -> (Reverse<i64>, Timestamp, &JobId) {
    (Reverse(urgency(job)), job.submitted_at, &job.id)
}

/// The urgency of a job; higher comes first, and of equal values the older job. It does not depend on the current time,
/// because all pending jobs age equally.
pub fn urgency(job: &Job) -> i64 {
    i64::from(job.priority) * AGING_PER_POINT.0 - job.submitted_at.0
}

fn is_due(job: &Job, now: Timestamp) -> bool {
    job.is_queued() && job.earliest_offer().is_none_or(|earliest| earliest <= now)
}

/// The requirements of a job, as a key.
pub type DemandKey<'w> =
    (JobTarget, &'w Labels, Option<u32>, Option<u64>, Option<&'w str>, SandboxLevel, bool, [&'w [String]; 2]);

/// Returns the part of a job's requirements that decides which workers it matches.
pub fn demand_key(spec: &JobSpec) -> DemandKey<'_> {
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

/// How far the search has advanced for jobs with the same requirements. During a round, workers only get fuller: a
/// worker that did not match will not match the next job with the same requirements, so no worker is checked twice.
#[derive(Default)]
struct SearchPosition {
    next: usize,
    next_reservable: usize,
}

struct PlanningRound<'w> {
    plan: AssignmentPlan<'w>,
    /// Number of workers with capacity; without any, the round is over.
    open_workers: usize,
    searches: HashMap<DemandKey<'w>, SearchPosition>,
}

impl<'w> PlanningRound<'w> {
    fn new(fleet: PlannerFleet<'w>) -> Self {
        let open_workers = fleet.with_capacity;
        let plan = AssignmentPlan { assignments: Vec::new(), reserved: BTreeMap::new(), fleet };
        Self { plan, open_workers, searches: HashMap::new() }
    }

    fn assign(&mut self, job: &'w Job, now: Timestamp) {
        let AssignmentPlan { assignments, reserved, fleet } = &mut self.plan;
        if fleet.reached_limit(&job.submitted_by).is_some() {
            return;
        }
        let search = self.searches.entry(demand_key(&job.spec)).or_default();
        while search.next < fleet.with_capacity
            && let Some(candidate) = fleet.nth(search.next)
        {
            let is_match = !reserved.contains_key(&candidate.worker.id) && fits(&job.spec, candidate);
            if let Some(gpus) = is_match.then(|| grant_gpus(&job.spec.demand, candidate)).flatten() {
                let uuids = gpus.iter().map(|uuid| (*uuid).to_owned()).collect();
                candidate.held_gpus.push(gpus);
                self.open_workers -= usize::from(!candidate.has_capacity());
                assignments.push(Assignment { job: job.id.clone(), worker: candidate.worker.id.clone(), gpus: uuids });
                fleet.add_running(&job.submitted_by);
                return;
            }
            search.next += 1;
        }
        if now - job.submitted_at < STARVATION_AFTER {
            return;
        }
        while let Some(candidate) = fleet.nth(search.next_reservable) {
            let id = &candidate.worker.id;
            search.next_reservable += 1;
            if !reserved.contains_key(id) && blockers(&job.spec, candidate).all(|b| b.remedy() == Remedy::Wait) {
                reserved.insert(id.clone(), job.id.clone());
                return;
            }
        }
    }
}

impl AssignmentPlan<'_> {
    /// Returns all blockers of a job on a worker after this round.
    pub fn blockers(&self, job: &Job, candidate: &Candidate<'_>) -> Vec<Blocker> {
        let reserved = self.reserved.get(&candidate.worker.id).filter(|reserved_for| **reserved_for != job.id);
        let reserved = reserved.map(|reserved_for| Blocker::Reserved { job: reserved_for.clone() });
        blockers(&job.spec, candidate).chain(reserved).collect()
    }
}
