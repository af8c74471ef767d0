//! What has to happen for a job to be taken, whoever is before it.

use std::collections::HashMap;

use super::Summary;
use crate::domain::job::{Job, Target};
use crate::domain::matching::{Blocker, Remedy, blockers};
use crate::domain::plan::{Class, Fleet, class};

/// What has to happen for a job to be taken; what takes the least comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outlook {
    /// A worker takes it when it has time.
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

impl Outlook {
    /// Whether neither time helps nor somebody who sees to a worker.
    pub const fn fits_none(self) -> bool {
        matches!(self, Self::Never | Self::NoLocalWorker)
    }

    /// Of a job for this target, by the nearest worker.
    pub(super) fn of(target: Target, nearest: Option<Distance>, has_local: bool) -> Self {
        if target == Target::Local && !has_local {
            return Self::NoLocalWorker;
        }
        match nearest.map(|distance| distance.hardest) {
            None => Self::NoWorkers,
            Some(None | Some(Remedy::Time)) => Self::Busy,
            Some(Some(Remedy::Worker)) => Self::Away,
            Some(Some(Remedy::Demand)) => Self::Never,
        }
    }
}

/// How far a worker is from taking a job: the hardest remedy first, then how much of it is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance {
    relevance: Relevance,
    hardest: Option<Remedy>,
    as_hard: usize,
}

/// How much a worker says about whether a job can run. One that has never connected says nothing beside one that has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    Known,
    NeverConnected,
    /// It is for other jobs, or used up.
    NotMeant,
}

/// By everything that is in the way.
pub(super) fn distance(blockers: &[Blocker]) -> Distance {
    let hardest = blockers.iter().map(Blocker::remedy).max();
    let as_hard = blockers.iter().filter(|blocker| Some(blocker.remedy()) == hardest).count();
    let relevance = blockers.iter().map(|blocker| match blocker {
        Blocker::WrongTarget { .. } | Blocker::Spent => Relevance::NotMeant,
        Blocker::NeverConnected => Relevance::NeverConnected,
        _ => Relevance::Known,
    });
    Distance { relevance: relevance.max().unwrap_or(Relevance::Known), hardest, as_hard }
}

/// The outlooks of jobs on one fleet. Of those that ask for the same only one is judged, and only so many in all.
pub struct Outlooks<'j, 'w> {
    fleet: Fleet<'w>,
    judged: HashMap<Class<'j>, Outlook>,
    /// How often a job was held against a worker, and how often at most before no other demand is judged.
    compared: usize,
    most: usize,
}

impl<'j, 'w> Outlooks<'j, 'w> {
    /// Judges no other demand after so many comparisons of a job with a worker.
    pub fn within(fleet: Fleet<'w>, most: usize) -> Self {
        Self { fleet, judged: HashMap::new(), compared: 0, most }
    }

    /// How often a job was held against a worker so far.
    pub const fn compared(&self) -> usize {
        self.compared
    }

    /// The outlook of a job that waits; none if too much was compared before.
    pub fn of(&mut self, job: &'j Job) -> Option<Outlook> {
        let class = class(&job.spec);
        if let Some(judged) = self.judged.get(&class) {
            return Some(*judged);
        }
        if self.compared >= self.most {
            return None;
        }
        let outlook = self.judge(job);
        self.judged.insert(class, outlook);
        Some(outlook)
    }

    /// Asks no more workers than it must: one that would take the job is enough.
    fn judge(&mut self, job: &Job) -> Outlook {
        let (mut nearest, mut has_local, mut place) = (None, false, 0);
        while let Some(candidate) = self.fleet.nth(place) {
            place += 1;
            self.compared += 1;
            let blockers: Vec<Blocker> = blockers(&job.spec, candidate).collect();
            has_local |= candidate.worker.local;
            let distance = distance(&blockers);
            nearest = Some(nearest.map_or(distance, |before: Distance| before.min(distance)));
            if distance.hardest <= Some(Remedy::Time) {
                break;
            }
        }
        Outlook::of(job.spec.target, nearest, has_local)
    }

    /// How many workers are left after each thing that a job asks for; none if there are no workers.
    pub fn summary(&mut self, job: &Job) -> Option<Summary> {
        self.fleet.draw_all();
        self.compared += self.fleet.candidates.len();
        let each = self.fleet.candidates.iter().map(|candidate| blockers(&job.spec, candidate).collect::<Vec<_>>());
        Summary::of(&job.spec, each)
    }
}
