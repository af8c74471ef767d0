//! Stops running jobs so that others start: on GPUs that are guaranteed to a team, for urgent jobs, on GPUs of idle jobs,
//! and after a turn, so that equal users alternate. Nothing is stopped unless the other job then fits (invariant I12).

mod cost;
mod right;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

pub use self::cost::RunningAttempt;
use self::right::PreemptionRight;
pub use self::right::{MIN_RUNTIME, TURN};
use super::ids::{JobId, WorkerId};
use super::job::{Job, Preemption};
use super::matching::{Candidate, fits, grant_gpus};
use super::plan::{DemandKey, QueueOf, demand_key, queue_of};
use super::shares::ShareTree;
use super::time::{Millis, Timestamp};

/// A job is stopped after its next checkpoint if that comes within this time.
pub const PATIENCE: Millis = Millis::from_secs(600);

/// What the decision needs of the fleet.
pub struct PreemptionInput<'w> {
    /// The waiting jobs, in the order of the queue.
    pub waiting: Vec<&'w Job>,
    /// The workers with their leases.
    pub candidates: Vec<Candidate<'w>>,
    /// The attempts that run, by job.
    pub running: HashMap<&'w JobId, RunningAttempt<'w>>,
    /// The shares, with what runs.
    pub shares: ShareTree<'w>,
}

/// The waiting jobs that are compared with the fleet, at most; the others are compared in a later pass.
const MAX_COMPARED: usize = 100;

/// Decides which attempts are stopped, for which waiting jobs: those that may, in the order of the queue, each on the worker
/// where the least is lost. A job that fits a worker now, or that a limit prevents, stops none.
pub fn plan_preemptions<'w>(mut input: PreemptionInput<'w>, now: Timestamp) -> Vec<(&'w Job, Preemption)> {
    let mut decided = Vec::new();
    let mut reserved: HashSet<&WorkerId> = HashSet::new();
    let mut stopped: HashSet<&JobId> = HashSet::new();
    for job in &input.waiting {
        if let Some(preemption) = job.preemption().filter(|preemption| preemption.holds(now)) {
            reserved.insert(&preemption.worker);
            stopped.extend(preemption.attempts.iter().map(|attempt| &attempt.job));
        }
    }
    let by_worker = running_by_worker(&input);
    let mut failed: HashSet<(QueueOf<'w>, u8, DemandKey<'w>)> = HashSet::new();
    let mut compared = 0;
    for job in input.waiting {
        let kind = (queue_of(job), job.priority, demand_key(&job.spec));
        let is_due = job.earliest_offer().is_none_or(|earliest| earliest <= now);
        let waits_for_stop = job.preemption().is_some_and(|preemption| preemption.holds(now));
        if compared >= MAX_COMPARED || !is_due || waits_for_stop || failed.contains(&kind) {
            continue;
        }
        compared += 1;
        let fits_now =
            |candidate: &Candidate<'w>| !reserved.contains(&candidate.worker.id) && fits_with(job, candidate);
        let right = PreemptionRight { job, shares: &input.shares, now };
        let best = if input.shares.reached_limit(job).is_some() || input.candidates.iter().any(fits_now) {
            None
        } else {
            let workers = input.candidates.iter().filter(|candidate| !reserved.contains(&candidate.worker.id));
            let choices = workers.filter_map(|candidate| {
                let running =
                    by_worker.get(&candidate.worker.id)?.iter().filter(|other| !stopped.contains(&other.job.id));
                cost::cheapest(job, candidate, running.filter_map(|other| Some((*other, right.over(other)?))), now)
            });
            choices.min_by_key(|choice| choice.cost)
        };
        let Some(choice) = best else {
            failed.insert(kind);
            continue;
        };
        reserved.insert(choice.worker);
        stopped.extend(choice.attempts.iter().map(|other| &other.job.id));
        for other in &choice.attempts {
            input.shares.remove_job(other.job, other.lease.gpus.len());
        }
        input.shares.add_job(job, super::shares::counted_gpus(&job.spec.demand) as usize);
        decided.push((job, choice.into_preemption(now)));
    }
    decided
}

fn fits_with<'w>(job: &'w Job, candidate: &Candidate<'w>) -> bool {
    candidate.has_capacity() && fits(&job.spec, candidate) && grant_gpus(&job.spec.demand, candidate).is_some()
}

fn running_by_worker<'w>(input: &PreemptionInput<'w>) -> HashMap<&'w WorkerId, Vec<RunningAttempt<'w>>> {
    let mut by_worker: HashMap<&WorkerId, Vec<RunningAttempt<'_>>> = HashMap::new();
    for running in input.running.values() {
        by_worker.entry(&running.lease.worker).or_default().push(*running);
    }
    for running in by_worker.values_mut() {
        running.sort_by_key(|running| &running.job.id);
    }
    by_worker
}
