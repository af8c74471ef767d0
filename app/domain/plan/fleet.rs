//! What planning plans with.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::domain::ids::WorkerId;
use crate::domain::job::Job;
use crate::domain::matching::{Candidate, has_room};
use crate::domain::time::Timestamp;
use crate::domain::worker::Worker;

/// How many jobs may hold a lease at once; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// In all.
    pub jobs: Option<u32>,
    /// Of one person.
    pub jobs_per_user: Option<u32>,
}

/// A limit that a job has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// So many jobs hold a lease in all.
    InAll(u32),
    /// So many jobs of its submitter hold one.
    PerUser(u32),
}

/// Every worker, in the order of their [`standing`], and what the limits count.
///
/// Workers are drawn as they are needed: mostly one job came, and the first worker takes it.
pub struct Fleet<'w> {
    /// The workers that were drawn so far, with what their leases hold.
    pub candidates: Vec<Candidate<'w>>,
    rest: Box<dyn Iterator<Item = Candidate<'w>> + 'w>,
    /// How many have room for a job: the first ones.
    pub with_room: usize,
    /// Whether labels count that agents reported.
    reported: bool,
    /// How many jobs hold a lease.
    running: u32,
    /// How many of whom.
    running_of: HashMap<&'w str, u32>,
    limits: Limits,
}

/// What stands first is asked first: workers with room; remote before local, those with GPUs before those without, small
/// hosts before large ones, the longest idle first.
///
/// `jobs` is how many leases the worker has.
pub fn standing(worker: &Worker, jobs: usize) -> (Reverse<bool>, bool, Reverse<bool>, usize, Timestamp, &str) {
    let gpus = worker.capability().map_or(0, |capability| capability.gpus.len());
    let room = has_room(worker, jobs);
    (Reverse(room), worker.local, Reverse(gpus > 0), gpus, worker.link_since(), &worker.name)
}

impl<'w> Fleet<'w> {
    /// Workers in any order, and the jobs that hold a lease on any of them.
    pub fn new(
        workers: impl IntoIterator<Item = &'w Worker>,
        leased: impl IntoIterator<Item = &'w Job>,
        limits: Limits,
    ) -> Self {
        let mut held: HashMap<&WorkerId, Vec<Vec<&'w str>>> = HashMap::new();
        let mut running_of: HashMap<&str, u32> = HashMap::new();
        for job in leased {
            let Some(lease) = job.live_lease() else { continue };
            held.entry(&lease.worker).or_default().push(lease.held());
            *running_of.entry(&job.submitted_by).or_default() += 1;
        }
        let candidate = |worker: &'w Worker| Candidate::new(worker, held.remove(&worker.id).unwrap_or_default());
        let mut candidates: Vec<_> = workers.into_iter().map(candidate).collect();
        candidates.sort_by_cached_key(|candidate| standing(candidate.worker, candidate.held.len()));
        let with_room = candidates.iter().filter(|candidate| candidate.has_room()).count();
        Self::drawing(with_room, candidates.into_iter(), running_of, limits)
    }

    /// Workers by their standing, the first `with_room` of which have room; and how many jobs of whom hold a lease.
    pub fn drawing(
        with_room: usize,
        workers: impl Iterator<Item = Candidate<'w>> + 'w,
        running_of: HashMap<&'w str, u32>,
        limits: Limits,
    ) -> Self {
        let running = running_of.values().sum();
        let rest = Box::new(workers);
        Self { candidates: Vec::new(), rest, with_room, reported: true, running, running_of, limits }
    }

    /// The same, with no label counting that an agent reported.
    #[must_use]
    pub fn ignoring_reported_labels(self) -> Self {
        Self { reported: false, ..self }
    }

    /// Which limit keeps one more job of this person back.
    pub fn limited(&self, user: &str) -> Option<Limited> {
        let of_user = self.running_of.get(user).copied().unwrap_or(0);
        let in_all = self.limits.jobs.filter(|limit| self.running >= *limit).map(Limited::InAll);
        in_all.or(self.limits.jobs_per_user.filter(|limit| of_user >= *limit).map(Limited::PerUser))
    }

    /// One more job of this person holds a lease.
    pub fn holds_one_more(&mut self, user: &'w str) {
        self.running += 1;
        *self.running_of.entry(user).or_default() += 1;
    }

    /// The worker at this place, from 0; none behind the last.
    pub fn nth(&mut self, place: usize) -> Option<&mut Candidate<'w>> {
        let missing = (place + 1).saturating_sub(self.candidates.len());
        self.draw(missing);
        self.candidates.get_mut(place)
    }

    /// Draws every worker.
    pub fn draw_all(&mut self) {
        self.draw(usize::MAX);
    }

    fn draw(&mut self, number: usize) {
        let reported = self.reported;
        let judged = |candidate: Candidate<'w>| Candidate { reported: candidate.reported && reported, ..candidate };
        self.candidates.extend(self.rest.by_ref().take(number).map(judged));
    }
}
