//! Why a job waits, and what would change it.

mod outlook;
mod summary;
#[cfg(test)]
mod tests;

use self::outlook::distance;
pub use self::outlook::{Outlook, Outlooks};
pub use self::summary::{Ask, Step, Summary};
use super::ids::WorkerId;
use super::job::{Job, State};
use super::matching::Blocker;
use super::plan::{Fleet, Limited, Plan, plan, rank};
use super::time::Timestamp;
use super::worker::Worker;

/// Why a job waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// In short.
    pub verdict: Verdict,
    /// How many workers are left after each thing that the job asks for; none if it does not wait or there are none.
    pub summary: Option<Summary>,
    /// What each worker says to it, the one that is nearest to fitting first.
    pub workers: Vec<Answer>,
}

/// What one worker says to a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub name: String,
    /// Everything in the way, the most telling first; nothing if it would take the job now.
    pub blockers: Vec<Blocker>,
}

/// Why a job waits, in short.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It does not wait.
    NotWaiting,
    /// A worker takes it now.
    Fits {
        /// Which.
        worker: WorkerId,
    },
    /// Its last attempt was lost; it is tried again then.
    BackOff {
        /// When.
        until: Timestamp,
    },
    /// It is exclusive, and a trainer of it may run until then that nobody hears of.
    KeptBack {
        /// When that is over.
        until: Timestamp,
    },
    /// As many jobs run as may.
    Limited(Limited),
    /// A worker will take it when it has time.
    Busy,
    /// A worker would take it if somebody saw to that worker.
    Away,
    /// No worker can take it as it was submitted, as far as it is known what they have.
    Never,
    /// It is for the server's own GPUs, and the server runs no jobs itself.
    NoLocalWorker,
    /// There are no workers.
    NoWorkers,
}

/// Explains why `job` waits among the others that wait. `waiting` need not contain it: so a submit is previewed.
pub fn explain<'w>(
    job: &'w Job,
    waiting: impl IntoIterator<Item = &'w Job>,
    fleet: Fleet<'w>,
    now: Timestamp,
) -> Explanation {
    let State::Queued { .. } = job.state else {
        return Explanation { verdict: Verdict::NotWaiting, summary: None, workers: Vec::new() };
    };
    let mut waiting: Vec<&Job> = waiting.into_iter().filter(|other| other.id != job.id).chain([job]).collect();
    waiting.sort_by_key(|job| rank(job));
    let mut plan = plan(waiting, fleet, now);
    plan.fleet.draw_all();
    let mut workers: Vec<Answer> =
        plan.fleet.candidates.iter().map(|candidate| answer(candidate.worker, plan.blockers(job, candidate))).collect();
    let placed = plan.assignments.iter().find(|assignment| assignment.job == job.id);
    if let Some(placed) = placed {
        for answer in workers.iter_mut().filter(|answer| answer.worker == placed.worker) {
            answer.blockers.clear();
        }
    }
    let summary = Summary::of(&job.spec, workers.iter().map(|answer| answer.blockers.as_slice()));
    workers.sort_by_cached_key(|answer| (distance(&answer.blockers), answer.name.clone()));
    let verdict = match (placed, job.due()) {
        (Some(placed), _) => Verdict::Fits { worker: placed.worker.clone() },
        (None, Some(until)) if until > now && job.kept_back == Some(until) => Verdict::KeptBack { until },
        (None, Some(until)) if until > now => Verdict::BackOff { until },
        (None, _) => waits(job, &plan, &workers),
    };
    Explanation { verdict, summary, workers }
}

fn answer(worker: &Worker, blockers: Vec<Blocker>) -> Answer {
    Answer { worker: worker.id.clone(), name: worker.name.clone(), blockers }
}

fn waits(job: &Job, plan: &Plan<'_>, workers: &[Answer]) -> Verdict {
    let nearest = workers.first().map(|answer| distance(&answer.blockers));
    let has_local = plan.fleet.candidates.iter().any(|candidate| candidate.worker.local);
    match Outlook::of(job.spec.target, nearest, has_local) {
        Outlook::Busy => plan.fleet.limited(&job.submitted_by).map_or(Verdict::Busy, Verdict::Limited),
        Outlook::Away => Verdict::Away,
        Outlook::Never => Verdict::Never,
        Outlook::NoLocalWorker => Verdict::NoLocalWorker,
        Outlook::NoWorkers => Verdict::NoWorkers,
    }
}
