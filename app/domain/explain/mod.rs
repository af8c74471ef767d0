//! Why a job waits, and what would change it.

#[cfg(test)]
mod tests;

use super::ids::WorkerId;
use super::job::{Job, State};
use super::matching::{Blocker, Remedy, blockers};
use super::plan::{Fleet, Limited, Plan, plan, rank};
use super::time::Timestamp;
use super::worker::Worker;

/// Why a job waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// In short.
    pub verdict: Verdict,
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
    /// No worker there is can ever take it.
    Never,
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
        return Explanation { verdict: Verdict::NotWaiting, workers: Vec::new() };
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
    workers.sort_by(|a, b| distance(a).cmp(&distance(b)).then_with(|| a.name.cmp(&b.name)));
    let verdict = match (placed, job.due()) {
        (Some(placed), _) => Verdict::Fits { worker: placed.worker.clone() },
        (None, Some(until)) if until > now && job.kept_back == Some(until) => Verdict::KeptBack { until },
        (None, Some(until)) if until > now => Verdict::BackOff { until },
        (None, _) => waits(job, &plan, &workers),
    };
    Explanation { verdict, workers }
}

/// What has to happen for any worker to take the job, whoever is before it: nothing but time, if one would; none if there
/// are no workers. It asks no more workers than it must.
pub fn nearest(job: &Job, fleet: &mut Fleet<'_>) -> Option<Remedy> {
    let mut nearest = None;
    let mut place = 0;
    while let Some(candidate) = fleet.nth(place) {
        let hardest = blockers(&job.spec, candidate).map(|blocker| blocker.remedy()).max().unwrap_or(Remedy::Time);
        if hardest == Remedy::Time {
            return Some(hardest);
        }
        nearest = Some(nearest.map_or(hardest, |before: Remedy| before.min(hardest)));
        place += 1;
    }
    nearest
}

fn answer(worker: &Worker, blockers: Vec<Blocker>) -> Answer {
    Answer { worker: worker.id.clone(), name: worker.name.clone(), blockers }
}

/// How far a worker is from taking the job: the hardest remedy first, then how much of it is in the way.
fn distance(answer: &Answer) -> (Option<Remedy>, usize) {
    let hardest = answer.blockers.iter().map(Blocker::remedy).max();
    let as_hard = answer.blockers.iter().filter(|blocker| Some(blocker.remedy()) == hardest).count();
    (hardest, as_hard)
}

fn waits(job: &Job, plan: &Plan<'_>, workers: &[Answer]) -> Verdict {
    let nearest = workers.first().map(|answer| distance(answer).0);
    match (nearest, plan.fleet.limited(&job.submitted_by)) {
        (None, _) => Verdict::NoWorkers,
        (Some(Some(Remedy::Demand)), _) => Verdict::Never,
        (Some(Some(Remedy::Worker)), _) => Verdict::Away,
        (Some(_), Some(limited)) => Verdict::Limited(limited),
        (Some(_), None) => Verdict::Busy,
    }
}
