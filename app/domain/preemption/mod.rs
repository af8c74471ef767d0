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
use super::ids::{AttemptNumber, JobId, WorkerId};
use super::job::{Job, JobState};
use super::matching::{Candidate, fits, grant_gpus};
use super::plan::{DemandKey, QueueOf, demand_key, queue_of};
use super::shares::ShareTree;
use super::time::{Millis, Timestamp};

/// A job is stopped after its next checkpoint if that comes within this time.
pub const PATIENCE: Millis = Millis::from_secs(600);
/// Freed GPUs are reserved until this time after the last stop.
const RESERVED_FOR: Millis = Millis::from_secs(300);
/// A job that was stopped this often within a day is stopped for no other one.
pub const MAX_PER_DAY: usize = 3;
const DAY: Millis = Millis::from_secs(86_400);

/// Why a job may stop others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreemptionReason {
    /// The others are idle jobs.
    Idle,
    /// Its team is guaranteed the GPUs, which another one has borrowed.
    Guaranteed,
    /// It is urgent.
    Urgent,
    /// The others have had their turn.
    Turn,
}

impl PreemptionReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Guaranteed, Self::Urgent, Self::Turn];

    /// Returns its name in the database and in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Guaranteed => "guaranteed",
            Self::Urgent => "urgent",
            Self::Turn => "turn",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// An attempt that is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptedAttempt {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// When it stops; earlier, once it has a new checkpoint.
    pub stop_at: Timestamp,
}

/// Which attempts are stopped for a job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// Their worker, which is reserved for the job.
    pub worker: WorkerId,
    /// Why.
    pub reason: PreemptionReason,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// The attempts.
    pub attempts: Vec<PreemptedAttempt>,
}

impl Preemption {
    /// Returns when the last attempt stops.
    pub fn last_stop(&self) -> Timestamp {
        self.attempts.iter().map(|attempt| attempt.stop_at).max().unwrap_or(self.decided_at)
    }

    /// Returns whether the worker is still reserved: otherwise an attempt has not stopped, or its GPUs are gone.
    pub fn holds(&self, now: Timestamp) -> bool {
        now <= self.last_stop() + RESERVED_FOR
    }

    /// Stops an attempt immediately, because it has a checkpoint.
    #[must_use]
    pub fn with_checkpoint(mut self, job: &JobId, now: Timestamp) -> Self {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.job == *job) {
            attempt.stop_at = attempt.stop_at.min(now);
        }
        self
    }
}

/// Returns whether a job has been stopped so often within a day that it now stays.
pub fn is_protected(job: &Job, now: Timestamp) -> bool {
    job.preempted_at.iter().filter(|at| now - **at < DAY).count() >= MAX_PER_DAY
}

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
        if let Some(preemption) = pending_of(job).filter(|preemption| preemption.holds(now)) {
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
        let waits_for_stop = pending_of(job).is_some_and(|preemption| preemption.holds(now));
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

fn pending_of(job: &Job) -> Option<&Preemption> {
    job.state.waiting()?.preemption.as_deref()
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

impl Job {
    /// Returns the attempts that are stopped for this job, while it waits.
    pub fn preemption(&self) -> Option<&Preemption> {
        pending_of(self)
    }

    /// Lets a waiting job stop others.
    #[must_use]
    pub fn preempting(self, preemption: Option<Preemption>) -> Self {
        match self.state {
            JobState::Queued(waiting) => {
                let waiting = super::job::Waiting { preemption: preemption.map(Box::new), ..waiting };
                Self { state: JobState::Queued(waiting), ..self }
            }
            _ => self,
        }
    }
}
