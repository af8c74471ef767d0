//! Explains why a job is pending, and what would change that.

mod blocker_counts;
mod feasibility;
mod summary;
#[cfg(test)]
mod tests;

use itertools::Itertools;

use self::blocker_counts::BlockerCounts;
use self::feasibility::distance;
pub use self::feasibility::{Feasibility, FeasibilityCache};
use self::summary::FitCounts;
pub use self::summary::{FitStep, FitSummary, JobRequirement};
use super::ids::WorkerId;
use super::job::Job;
use super::matching::{Blocker, Candidate};
use super::plan::{AssignmentPlan, JobQueue, PlannerFleet, ReachedLimit, plan};
use super::time::Timestamp;
use super::worker::Worker;

/// Why a job is pending.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<'a> {
    /// The result.
    pub verdict: ExplainVerdict,
    /// Number of workers left after each requirement; none if the job is not pending or there are no workers.
    pub summary: Option<FitSummary>,
    /// The result for each of the closest workers, the closest match first.
    pub workers: Vec<WorkerExplanation<'a>>,
    /// The other workers; see [`MAX_LISTED_WORKERS`].
    pub unlisted: Vec<UnlistedWorkers<'a>>,
}

/// The number of workers that are listed.
pub const MAX_LISTED_WORKERS: usize = 50;

/// Workers that are not listed, with the same kind of most relevant blocker.
#[derive(Debug, Clone, PartialEq)]
pub struct UnlistedWorkers<'a> {
    /// The blocker, with the parameters of one of them; none if they would run the job.
    pub blocker: Option<Blocker<'a>>,
    /// Their number.
    pub workers: usize,
}

/// The scheduling result for one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerExplanation<'a> {
    /// The worker.
    pub worker: &'a WorkerId,
    /// Its name.
    pub name: &'a str,
    /// All blockers, the most relevant first; empty if it would run the job now.
    pub blockers: Vec<Blocker<'a>>,
}

/// The result of an explanation.
#[derive(Debug, Clone, PartialEq)]
pub enum ExplainVerdict {
    /// The job is not pending.
    NotWaiting,
    /// A worker would run it now.
    Fits {
        /// The worker.
        worker: WorkerId,
    },
    /// Its last attempt was lost; it is retried later.
    BackOff {
        /// When.
        until: Timestamp,
    },
    /// Exclusive job: a trainer of an earlier attempt may still run.
    Held {
        /// Until when.
        until: Timestamp,
    },
    /// Other jobs are stopped so that it can start.
    Preempting {
        /// On this worker.
        worker: WorkerId,
        /// When the last of them stops.
        until: Timestamp,
    },
    /// The limit on running jobs is reached.
    LimitReached(ReachedLimit),
    /// Matching workers are busy.
    Busy,
    /// A worker matches but needs the attention of an admin.
    WorkerUnavailable,
    /// No known worker meets the job's requirements.
    Unsatisfiable,
    /// The job requires the server's own GPUs, but the server runs no jobs itself.
    NoLocalWorker,
    /// There are no workers.
    NoWorkers,
}

/// Explains why `job` is pending among other pending jobs. `waiting` need not contain it, so this also previews a
/// submit.
pub fn explain<'w>(
    job: &'w Job,
    waiting: impl IntoIterator<Item = &'w Job>,
    fleet: PlannerFleet<'w>,
    now: Timestamp,
) -> Explanation<'w> {
    if !job.is_queued() {
        return Explanation {
            verdict: ExplainVerdict::NotWaiting,
            summary: None,
            workers: Vec::new(),
            unlisted: Vec::new(),
        };
    }
    let waiting = JobQueue::new(waiting.into_iter().filter(|other| other.id != job.id).chain([job]));
    let mut plan = plan(waiting, fleet, now);
    plan.fleet.load_all();
    let assignment = plan.assignments.iter().find(|assignment| assignment.job == job.id);
    let (mut fit_counts, mut unlisted) = (FitCounts::new(&job.spec), BlockerCounts::default());
    let is_assigned = |worker: &Worker| assignment.is_some_and(|assignment| assignment.worker == worker.id);
    let find_blockers = |candidate: &Candidate<'w>, found: &mut Vec<Blocker<'w>>| {
        found.clear();
        if !is_assigned(candidate.worker) {
            found.extend(plan.blockers(job, candidate));
        }
    };
    let mut found = Vec::new();
    let ranked = plan.fleet.candidates.iter().map(|candidate| {
        find_blockers(candidate, &mut found);
        fit_counts.add(&found);
        unlisted.add(found.first());
        ((!is_assigned(candidate.worker), distance(&found), &candidate.worker.name), candidate)
    });
    let nearest = ranked.k_smallest_by(MAX_LISTED_WORKERS, |(left, _), (right, _)| left.cmp(right));
    let explained = nearest.map(|(_, candidate)| {
        let (Worker { id, name, .. }, mut blockers) = (candidate.worker, Vec::new());
        find_blockers(candidate, &mut blockers);
        WorkerExplanation { worker: id, name, blockers }
    });
    let workers: Vec<WorkerExplanation<'w>> = explained.collect();
    for worker in &workers {
        unlisted.remove(worker.blockers.first());
    }
    let verdict = match (assignment, job.earliest_offer()) {
        (Some(assignment), _) => ExplainVerdict::Fits { worker: assignment.worker.clone() },
        (None, Some(until)) if until > now && job.hold_until == Some(until) => ExplainVerdict::Held { until },
        (None, Some(until)) if until > now => ExplainVerdict::BackOff { until },
        (None, _) => match job.preemption().filter(|preemption| preemption.holds(now)) {
            Some(preemption) => {
                ExplainVerdict::Preempting { worker: preemption.worker.clone(), until: preemption.last_stop() }
            }
            None => waiting_verdict(job, &plan, &workers),
        },
    };
    Explanation { verdict, summary: fit_counts.summary(), workers, unlisted: unlisted.into_list() }
}

fn waiting_verdict(job: &Job, plan: &AssignmentPlan<'_>, workers: &[WorkerExplanation<'_>]) -> ExplainVerdict {
    let nearest = workers.first().map(|worker| distance(&worker.blockers));
    let has_local = plan.fleet.candidates.iter().any(|candidate| candidate.worker.local);
    match Feasibility::from_nearest(job.spec.target, nearest, has_local) {
        Feasibility::Busy => plan.fleet.reached_limit(job).map_or(ExplainVerdict::Busy, ExplainVerdict::LimitReached),
        Feasibility::WorkerUnavailable => ExplainVerdict::WorkerUnavailable,
        Feasibility::Unsatisfiable => ExplainVerdict::Unsatisfiable,
        Feasibility::NoLocalWorker => ExplainVerdict::NoLocalWorker,
        Feasibility::NoWorkers => ExplainVerdict::NoWorkers,
    }
}
