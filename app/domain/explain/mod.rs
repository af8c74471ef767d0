//! Explains why a job is pending, and what would change that.

mod feasibility;
mod summary;
#[cfg(test)]
mod tests;

use self::feasibility::distance;
pub use self::feasibility::{Feasibility, FeasibilityCache};
pub use self::summary::{FitStep, FitSummary, JobRequirement};
use super::ids::WorkerId;
use super::job::Job;
use super::matching::Blocker;
use super::plan::{AssignmentPlan, PlannerFleet, ReachedLimit, job_sort_key, plan};
use super::time::Timestamp;
use super::worker::Worker;

/// Why a job is pending.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The result.
    pub verdict: ExplainVerdict,
    /// Number of workers left after each requirement; none if the job is not pending or there are no workers.
    pub summary: Option<FitSummary>,
    /// The result for each worker, the closest match first.
    pub workers: Vec<WorkerExplanation>,
}

/// The scheduling result for one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerExplanation {
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: String,
    /// All blockers, the most relevant first; empty if it would run the job now.
    pub blockers: Vec<Blocker>,
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
) -> Explanation {
    if !job.is_queued() {
        return Explanation { verdict: ExplainVerdict::NotWaiting, summary: None, workers: Vec::new() };
    }
    let mut waiting: Vec<&Job> = waiting.into_iter().filter(|other| other.id != job.id).chain([job]).collect();
    waiting.sort_by_key(|job| job_sort_key(job));
    let mut plan = plan(waiting, fleet, now);
    plan.fleet.load_all();
    let mut workers: Vec<WorkerExplanation> = plan
        .fleet
        .candidates
        .iter()
        .map(|candidate| explain_worker(candidate.worker, plan.blockers(job, candidate)))
        .collect();
    let assignment = plan.assignments.iter().find(|assignment| assignment.job == job.id);
    if let Some(assignment) = assignment {
        for worker in workers.iter_mut().filter(|worker| worker.worker == assignment.worker) {
            worker.blockers.clear();
        }
    }
    let summary = FitSummary::from_blockers(&job.spec, workers.iter().map(|worker| worker.blockers.as_slice()));
    workers.sort_by_cached_key(|worker| (distance(&worker.blockers), worker.name.clone()));
    let verdict = match (assignment, job.earliest_offer()) {
        (Some(assignment), _) => ExplainVerdict::Fits { worker: assignment.worker.clone() },
        (None, Some(until)) if until > now && job.hold_until == Some(until) => ExplainVerdict::Held { until },
        (None, Some(until)) if until > now => ExplainVerdict::BackOff { until },
        (None, _) => waiting_verdict(job, &plan, &workers),
    };
    Explanation { verdict, summary, workers }
}

fn explain_worker(worker: &Worker, blockers: Vec<Blocker>) -> WorkerExplanation {
    WorkerExplanation { worker: worker.id.clone(), name: worker.name.clone(), blockers }
}

fn waiting_verdict(job: &Job, plan: &AssignmentPlan<'_>, workers: &[WorkerExplanation]) -> ExplainVerdict {
    let nearest = workers.first().map(|worker| distance(&worker.blockers));
    let has_local = plan.fleet.candidates.iter().any(|candidate| candidate.worker.local);
    match Feasibility::from_nearest(job.spec.target, nearest, has_local) {
        Feasibility::Busy => {
            plan.fleet.reached_limit(&job.submitted_by).map_or(ExplainVerdict::Busy, ExplainVerdict::LimitReached)
        }
        Feasibility::WorkerUnavailable => ExplainVerdict::WorkerUnavailable,
        Feasibility::Unsatisfiable => ExplainVerdict::Unsatisfiable,
        Feasibility::NoLocalWorker => ExplainVerdict::NoLocalWorker,
        Feasibility::NoWorkers => ExplainVerdict::NoWorkers,
    }
}
