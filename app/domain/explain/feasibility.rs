//! Whether a pending job can run, regardless of the jobs before it.

use std::collections::HashMap;

use super::FitSummary;
use super::summary::FitCounts;
use crate::domain::job::{Job, JobTarget};
use crate::domain::matching::{Blocker, Remedy, blockers};
use crate::domain::plan::{DemandKey, PlannerFleet, demand_key};

/// Whether a pending job can run, from the easiest to the hardest case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feasibility {
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

impl Feasibility {
    /// Returns whether neither waiting nor an admin's action on a worker helps.
    pub const fn is_unsatisfiable(self) -> bool {
        matches!(self, Self::Unsatisfiable | Self::NoLocalWorker)
    }

    /// Returns the feasibility of a job with this target, by its closest worker.
    pub(super) fn from_nearest(target: JobTarget, nearest: Option<Distance>, has_local: bool) -> Self {
        if target == JobTarget::Local && !has_local {
            return Self::NoLocalWorker;
        }
        match nearest.map(|distance| distance.hardest) {
            None => Self::NoWorkers,
            Some(None | Some(Remedy::Wait)) => Self::Busy,
            Some(Some(Remedy::FixWorker)) => Self::WorkerUnavailable,
            Some(Some(Remedy::ChangeJob)) => Self::Unsatisfiable,
        }
    }
}

/// How far a worker is from matching: the hardest remedy first, then the number of blockers with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance {
    relevance: Relevance,
    hardest: Option<Remedy>,
    hardest_count: usize,
}

/// How relevant a worker is for the result. Workers that never connected are less relevant than those that have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    Known,
    NeverConnected,
    /// It is for other targets, or retired.
    Ineligible,
}

/// Returns the distance for these blockers.
pub(super) fn distance(blockers: &[Blocker<'_>]) -> Distance {
    let hardest = blockers.iter().map(Blocker::remedy).max();
    let hardest_count = blockers.iter().filter(|blocker| Some(blocker.remedy()) == hardest).count();
    let relevance = blockers.iter().map(|blocker| match blocker {
        Blocker::WrongTarget { .. } | Blocker::Retired => Relevance::Ineligible,
        Blocker::NeverConnected => Relevance::NeverConnected,
        _ => Relevance::Known,
    });
    Distance { relevance: relevance.max().unwrap_or(Relevance::Known), hardest, hardest_count }
}

/// The feasibility of jobs on one fleet. Only one job is checked for each set of requirements, within a budget.
pub struct FeasibilityCache<'j, 'w> {
    fleet: PlannerFleet<'w>,
    known: HashMap<DemandKey<'j>, Feasibility>,
    /// Number of comparisons of a job with a worker so far, and the maximum.
    comparisons: usize,
    max_comparisons: usize,
}

impl<'j, 'w> FeasibilityCache<'j, 'w> {
    /// Creates a cache that checks no further requirements after this many comparisons of a job with a worker.
    pub fn with_budget(fleet: PlannerFleet<'w>, max_comparisons: usize) -> Self {
        Self { fleet, known: HashMap::new(), comparisons: 0, max_comparisons }
    }

    /// Returns the number of comparisons so far.
    pub const fn comparisons(&self) -> usize {
        self.comparisons
    }

    /// Returns the feasibility of a pending job; none if the budget is used up.
    pub fn feasibility(&mut self, job: &'j Job) -> Option<Feasibility> {
        let key = demand_key(&job.spec);
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.comparisons >= self.max_comparisons {
            return None;
        }
        let feasibility = self.assess(job);
        self.known.insert(key, feasibility);
        Some(feasibility)
    }

    /// Checks only as many workers as necessary: one that would run the job is enough.
    fn assess(&mut self, job: &Job) -> Feasibility {
        let (mut nearest, mut has_local, mut index, mut found) = (None, false, 0, Vec::new());
        while let Some(candidate) = self.fleet.nth(index) {
            index += 1;
            self.comparisons += 1;
            found.clear();
            found.extend(blockers(&job.spec, candidate));
            has_local |= candidate.worker.local;
            let distance = distance(&found);
            nearest = Some(nearest.map_or(distance, |before: Distance| before.min(distance)));
            if distance.hardest <= Some(Remedy::Wait) {
                break;
            }
        }
        Feasibility::from_nearest(job.spec.target, nearest, has_local)
    }

    /// Returns the number of workers left after each requirement; none if there are no workers.
    pub fn summary(&mut self, job: &Job) -> Option<FitSummary> {
        self.fleet.load_all();
        self.comparisons += self.fleet.candidates.len();
        let (mut counts, mut found) = (FitCounts::new(&job.spec), Vec::new());
        for candidate in &self.fleet.candidates {
            found.clear();
            found.extend(blockers(&job.spec, candidate));
            counts.add(&found);
        }
        counts.summary()
    }
}
