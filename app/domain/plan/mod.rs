//! Assigns queued jobs to workers.

mod fleet;
mod label_values;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

pub use self::fleet::{ConcurrencyLimits, PlannerFleet, ReachedLimit, UnmatchedKinds, fleet_size, worker_sort_key};
use self::label_values::{LabelValues, RequiredLabel};
pub use self::queue::{
    DemandKey, JobKind, JobQueue, QueueOf, QueuedJob, demand_key, job_kind, job_sort_key, queue_of, share_queue,
    urgency,
};
use super::ids::{JobId, WorkerId};
use super::job::Job;
use super::matching::{Blocker, Candidate, Remedy, blockers, fits, grant_gpus};
use super::shares::ShareRotation;
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
    pub reserved: BTreeMap<&'w WorkerId, &'w JobId>,
    /// The fleet after the offers.
    pub fleet: PlannerFleet<'w>,
    /// The kinds of jobs that match no worker now: for the next round.
    pub unmatched: UnmatchedKinds,
}

/// Assigns queued jobs by class and share (see [`ShareRotation`]), then priority and age. A job that fits no worker does not block later jobs, except that a job
/// that has waited too long reserves one worker that it could use.
///
/// The queue is read only while workers have capacity and jobs of some kind may match one: often thousands of jobs wait
/// for a few workers. Jobs that are not yet eligible are skipped.
pub fn plan<'w>(waiting: JobQueue<'w>, fleet: PlannerFleet<'w>, now: Timestamp) -> AssignmentPlan<'w> {
    let mut round = PlanningRound::new(fleet, waiting.kinds);
    let reserved_first = round.assign_reserved(now);
    let mut rotation = ShareRotation::new(waiting.shares, &mut round.plan.fleet.shares);
    while round.open_workers > 0
        && round.open_kinds > 0
        && let Some(queued) = rotation.next(&round.plan.fleet.shares)
    {
        if !reserved_first.contains(&&queued.job.id) {
            round.assign(&queued, now);
        }
    }
    round.finish()
}

fn is_due(job: &Job, now: Timestamp) -> bool {
    job.is_queued() && job.earliest_offer().is_none_or(|earliest| earliest <= now)
}

/// How far the search has advanced for jobs with the same requirements. During a round, workers only get fuller: a
/// worker that did not match will not match the next job with the same requirements, so no worker is checked twice.
struct Search<'w> {
    labels: Vec<RequiredLabel<'w>>,
    /// Whether only workers that have changed since the last round can match.
    only_changed: bool,
    next: usize,
    has_ended: bool,
    /// Whether it has passed a worker that is reserved for another job in this round only.
    passed_reserved: bool,
    next_reservable: usize,
}

/// What a round knows about a kind of jobs.
#[derive(Clone, Copy)]
enum KindState {
    /// No job of it was tried.
    New,
    /// The index of its search.
    Open(usize),
    /// The remaining jobs of it get no worker, and reserve none.
    Closed(usize),
    /// Its user or team has as much as the limits allow.
    Limited,
}

struct PlanningRound<'w> {
    plan: AssignmentPlan<'w>,
    /// Number of workers with capacity; without any, the round is over.
    open_workers: usize,
    /// By number of the kind.
    kinds: Vec<KindState>,
    /// Number of kinds that are neither closed nor limited; without any, the round is over.
    open_kinds: usize,
    searches: Vec<Search<'w>>,
    search_by_demand: HashMap<DemandKey<'w>, usize>,
    label_values: LabelValues<'w>,
    /// By index of the candidate: whether this round has filled it. None after the last element is full.
    full: Vec<bool>,
}

impl<'w> PlanningRound<'w> {
    fn new(fleet: PlannerFleet<'w>, kinds: usize) -> Self {
        Self {
            open_workers: fleet.with_capacity,
            plan: AssignmentPlan {
                assignments: Vec::new(),
                reserved: fleet.reservations.iter().map(|(worker, job)| (*worker, &job.id)).collect(),
                fleet,
                unmatched: UnmatchedKinds::default(),
            },
            kinds: Vec::new(),
            open_kinds: kinds,
            searches: Vec::new(),
            search_by_demand: HashMap::new(),
            label_values: LabelValues::default(),
            full: Vec::new(),
        }
    }

    /// Assigns jobs to the workers that are reserved for them, where they fit now; returns these jobs.
    fn assign_reserved(&mut self, now: Timestamp) -> Vec<&'w JobId> {
        let mut assigned = Vec::new();
        for (worker, job) in std::mem::take(&mut self.plan.fleet.reservations) {
            if !is_due(job, now) || self.plan.fleet.reached_limit(job).is_some() {
                continue;
            }
            let with_capacity = self.plan.fleet.with_capacity;
            let index = (0..with_capacity).map_while(|position| self.plan.fleet.nth_index(position));
            let indexes: Vec<usize> = index.collect();
            let found = indexes.into_iter().find(|index| self.plan.fleet.candidates[*index].worker.id == *worker);
            if found.is_some_and(|index| self.offer_to(job, index)) {
                self.plan.reserved.remove(worker);
                assigned.push(&job.id);
            }
        }
        assigned
    }

    fn assign(&mut self, queued: &QueuedJob<'w>, now: Timestamp) {
        let (job, kind) = (queued.job, queued.kind);
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, KindState::New);
        }
        if matches!(self.kinds[kind], KindState::Closed(_) | KindState::Limited) || !is_due(job, now) {
            return;
        }
        if self.plan.fleet.reached_limit(job).is_some() {
            return self.end_kind(kind, KindState::Limited);
        }
        let search = self.search(queued);
        if self.offer(job, search) {
            return;
        }
        // Jobs of this kind that come later are younger.
        let has_starved = now - job.submitted_at >= STARVATION_AFTER;
        if !has_starved || !self.reserve(job, search) {
            self.end_kind(kind, KindState::Closed(search));
        }
    }

    fn end_kind(&mut self, kind: usize, state: KindState) {
        self.kinds[kind] = state;
        self.open_kinds -= 1;
    }

    /// Returns the index of the search for a job.
    fn search(&mut self, queued: &QueuedJob<'w>) -> usize {
        if let KindState::Open(search) = self.kinds[queued.kind] {
            return search;
        }
        let only_changed = self.plan.fleet.unmatched.contains(queued.kind);
        let search = *self.search_by_demand.entry(demand_key(&queued.job.spec)).or_insert_with(|| {
            self.searches.push(Search {
                labels: self.label_values.require(&queued.job.spec.demand.labels),
                only_changed,
                next: 0,
                has_ended: false,
                passed_reserved: false,
                next_reservable: 0,
            });
            self.searches.len() - 1
        });
        self.kinds[queued.kind] = KindState::Open(search);
        search
    }

    /// Offers a job to the next worker that matches; returns whether there is one.
    fn offer(&mut self, job: &'w Job, search_index: usize) -> bool {
        loop {
            let search = &mut self.searches[search_index];
            let AssignmentPlan { reserved, fleet, .. } = &mut self.plan;
            let index = if search.only_changed {
                fleet.nth_changed_index(search.next)
            } else if search.next < fleet.with_capacity {
                fleet.nth_index(search.next)
            } else {
                None
            };
            let Some(index) = index else { break };
            let candidate = &fleet.candidates[index];
            let is_full = self.full.get(index) == Some(&true);
            let may_match = !is_full && !self.label_values.differ(&mut search.labels, index, candidate);
            if may_match && reserved.contains_key(&candidate.worker.id) {
                search.passed_reserved = true;
            } else if may_match && self.offer_to(job, index) {
                return true;
            }
            self.searches[search_index].next += 1;
        }
        self.searches[search_index].has_ended = true;
        false
    }

    /// Offers a job to a worker if it fits; returns whether it does.
    fn offer_to(&mut self, job: &'w Job, index: usize) -> bool {
        let AssignmentPlan { assignments, fleet, .. } = &mut self.plan;
        let candidate = &mut fleet.candidates[index];
        if !fits(&job.spec, candidate) {
            return false;
        }
        let Some(gpus) = grant_gpus(&job.spec.demand, candidate) else { return false };
        let uuids = gpus.iter().map(|uuid| (*uuid).to_owned()).collect();
        let number = gpus.len();
        candidate.held_gpus.push(gpus);
        if !candidate.has_capacity() {
            self.open_workers -= 1;
            self.full.resize(self.full.len().max(index + 1), false);
            self.full[index] = true;
        }
        assignments.push(Assignment { job: job.id.clone(), worker: candidate.worker.id.clone(), gpus: uuids });
        fleet.add_running(job, number);
        true
    }

    /// Reserves the next worker that a job could use later; returns whether there is one.
    fn reserve(&mut self, job: &'w Job, search: usize) -> bool {
        let search = &mut self.searches[search];
        let AssignmentPlan { reserved, fleet, .. } = &mut self.plan;
        while let Some(candidate) = fleet.nth(search.next_reservable) {
            let id = &candidate.worker.id;
            search.next_reservable += 1;
            if !reserved.contains_key(id) && blockers(&job.spec, candidate).all(|b| b.remedy() == Remedy::Wait) {
                reserved.insert(id, &job.id);
                return true;
            }
        }
        false
    }

    fn finish(self) -> AssignmentPlan<'w> {
        let is_unmatched = |state: &KindState| match state {
            KindState::Open(search) | KindState::Closed(search) => {
                let search = &self.searches[*search];
                search.has_ended && !search.passed_reserved
            }
            KindState::New | KindState::Limited => false,
        };
        let unmatched = if self.open_workers == 0 {
            UnmatchedKinds::All
        } else {
            let kinds = self.kinds.iter().enumerate().filter(|(_, state)| is_unmatched(state));
            UnmatchedKinds::These(kinds.map(|(kind, _)| kind).collect())
        };
        AssignmentPlan { unmatched, ..self.plan }
    }
}

impl<'w> AssignmentPlan<'w> {
    /// Returns all blockers of a job on a worker after this round.
    pub fn blockers(&self, job: &'w Job, candidate: &Candidate<'w>) -> impl Iterator<Item = Blocker<'w>> {
        let reserved = self.reserved.get(&candidate.worker.id).filter(|reserved_for| **reserved_for != &job.id);
        let reserved = reserved.map(|reserved_for| Blocker::Reserved { job: reserved_for });
        blockers(&job.spec, candidate).chain(reserved)
    }
}
