//! The state that the planner works on.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::domain::ids::WorkerId;
use crate::domain::job::Job;
use crate::domain::matching::{Candidate, has_capacity};
use crate::domain::shares::{FleetSize, ReachedShareLimit, ShareTree};
use crate::domain::time::Timestamp;
use crate::domain::worker::Worker;

/// Limits on concurrent jobs; none is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConcurrencyLimits {
    /// Total number of jobs.
    pub jobs: Option<u32>,
    /// Number of jobs per user.
    pub jobs_per_user: Option<u32>,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachedLimit {
    /// The total number of jobs.
    Total(u32),
    /// The number of jobs of the submitting user.
    PerUser(u32),
    /// A limit of the team or of the user in it.
    Share(ReachedShareLimit),
}

/// Kinds of jobs that match no worker with capacity; see [`super::JobKind`].
#[derive(Debug, Clone)]
pub enum UnmatchedKinds {
    /// No worker has capacity.
    All,
    /// These, by number.
    These(HashSet<usize>),
}

impl Default for UnmatchedKinds {
    fn default() -> Self {
        Self::These(HashSet::new())
    }
}

impl UnmatchedKinds {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(kinds) if kinds.is_empty())
    }

    /// Whether this kind is one of them.
    pub fn contains(&self, kind: usize) -> bool {
        match self {
            Self::All => true,
            Self::These(kinds) => kinds.contains(&kind),
        }
    }

    /// Forgets a kind that no job is of any longer, before its number is used again.
    pub fn remove(&mut self, kind: usize) {
        if let Self::These(kinds) = self {
            kinds.remove(&kind);
        }
    }
}

/// All workers in the order of [`worker_sort_key`], and the counts for the limits.
///
/// Workers are loaded only when needed: usually there is one job, and the first worker takes it.
pub struct PlannerFleet<'w> {
    /// The workers loaded so far, with their leases.
    pub candidates: Vec<Candidate<'w>>,
    /// The indexes of those in their order, as far as loaded.
    order: Vec<usize>,
    /// The indexes of those that have changed since the last round: the first ones.
    changed: HashMap<&'w WorkerId, usize>,
    /// The kinds that matched no worker at the end of the last round.
    pub(super) unmatched: UnmatchedKinds,
    not_loaded: Box<dyn Iterator<Item = Candidate<'w>> + 'w>,
    /// Number of workers with capacity; they come first.
    pub with_capacity: usize,
    /// Whether labels that agents reported are used.
    use_reported_labels: bool,
    /// Number of jobs with an active lease.
    running: u32,
    /// Number of those jobs per user.
    running_by_user: HashMap<&'w str, u32>,
    limits: ConcurrencyLimits,
    /// The shares of teams and their members.
    pub shares: ShareTree<'w>,
    /// Workers on which attempts are stopped, and the job that starts there.
    pub(super) reservations: Vec<(&'w WorkerId, &'w Job)>,
}

/// Returns what a worker adds to the size of the fleet: nothing while its agent has no stream.
pub fn fleet_size(worker: &Worker) -> FleetSize {
    let connected = worker.stream_id().and(worker.capability());
    let gpus = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    connected.map_or_else(FleetSize::default, |capability| FleetSize {
        gpus: gpus(capability.gpus.len()),
        slots: capability.max_jobs,
    })
}

/// The order in which workers are considered: workers with capacity; remote before local; with GPUs before without;
/// small hosts before large ones; longest idle first.
///
/// `jobs` is the number of active leases of the worker.
pub fn worker_sort_key(worker: &Worker, jobs: usize) -> (Reverse<bool>, bool, Reverse<bool>, usize, Timestamp, &str) {
    let gpus = worker.capability().map_or(0, |capability| capability.gpus.len());
    let has_capacity = has_capacity(worker, jobs);
    (Reverse(has_capacity), worker.local, Reverse(gpus > 0), gpus, worker.connection_since(), &worker.name)
}

impl<'w> PlannerFleet<'w> {
    /// Creates a fleet from workers in any order, and the jobs with an active lease.
    pub fn new(
        workers: impl IntoIterator<Item = &'w Worker>,
        leased: impl IntoIterator<Item = &'w Job>,
        limits: ConcurrencyLimits,
    ) -> Self {
        let mut held: HashMap<&WorkerId, Vec<Vec<&'w str>>> = HashMap::new();
        let mut running_by_user: HashMap<&str, u32> = HashMap::new();
        let mut shares = ShareTree::default();
        for job in leased {
            let Some(lease) = job.active_lease() else { continue };
            held.entry(&lease.worker).or_default().push(lease.gpu_uuids());
            *running_by_user.entry(&job.submitted_by).or_default() += 1;
            shares.add_job(job, lease.gpus.len());
        }
        let candidate = |worker: &'w Worker| {
            let held = if held.is_empty() { None } else { held.remove(&worker.id) };
            Candidate::new(worker, held.unwrap_or_default())
        };
        let mut candidates: Vec<_> = workers.into_iter().map(candidate).collect();
        for candidate in &candidates {
            shares.enlarge(fleet_size(candidate.worker));
        }
        candidates.sort_by_cached_key(|candidate| worker_sort_key(candidate.worker, candidate.held_gpus.len()));
        let with_capacity = candidates.iter().filter(|candidate| candidate.has_capacity()).count();
        Self::from_sorted(with_capacity, candidates.into_iter(), running_by_user, limits).with_shares(shares)
    }

    /// Creates a fleet from sorted workers, the first `with_capacity` of which have capacity, and the number of active
    /// leases per user.
    pub fn from_sorted(
        with_capacity: usize,
        workers: impl Iterator<Item = Candidate<'w>> + 'w,
        running_by_user: HashMap<&'w str, u32>,
        limits: ConcurrencyLimits,
    ) -> Self {
        let running = running_by_user.values().sum();
        let not_loaded = Box::new(workers);
        Self {
            candidates: Vec::new(),
            order: Vec::new(),
            changed: HashMap::new(),
            unmatched: UnmatchedKinds::default(),
            not_loaded,
            with_capacity,
            use_reported_labels: true,
            running,
            running_by_user,
            limits,
            shares: ShareTree::default(),
            reservations: Vec::new(),
        }
    }

    /// Reserves workers for jobs.
    #[must_use]
    pub fn with_reservations(self, reservations: Vec<(&'w WorkerId, &'w Job)>) -> Self {
        Self { reservations, ..self }
    }

    /// Uses these shares.
    #[must_use]
    pub fn with_shares(self, shares: ShareTree<'w>) -> Self {
        Self { shares, ..self }
    }

    /// Ignores labels that agents reported.
    #[must_use]
    pub fn ignoring_reported_labels(self) -> Self {
        Self { use_reported_labels: false, ..self }
    }

    /// Uses the result of the last round: kinds that matched no worker are compared only with workers that have changed
    /// since and have capacity, in the order of [`worker_sort_key`].
    #[must_use]
    pub fn since_last_round(
        mut self,
        unmatched: UnmatchedKinds,
        changed: impl IntoIterator<Item = Candidate<'w>>,
    ) -> Self {
        let use_reported_labels = self.use_reported_labels;
        self.candidates = changed.into_iter().map(|candidate| candidate.restricted(use_reported_labels)).collect();
        self.changed = self.candidates.iter().map(|candidate| &candidate.worker.id).zip(0..).collect();
        self.unmatched = unmatched;
        self
    }

    /// Returns the limit that prevents a job.
    pub fn reached_limit(&self, job: &Job) -> Option<ReachedLimit> {
        let running_of_user = || self.running_by_user.get(job.submitted_by.as_str()).copied().unwrap_or(0);
        let total_limit = self.limits.jobs.filter(|limit| self.running >= *limit).map(ReachedLimit::Total);
        let user_limit = self.limits.jobs_per_user.filter(|limit| running_of_user() >= *limit);
        let share_limit = || self.shares.reached_limit(job).map(ReachedLimit::Share);
        total_limit.or(user_limit.map(ReachedLimit::PerUser)).or_else(share_limit)
    }

    /// Counts the lease of a job with this number of GPUs.
    pub fn add_running(&mut self, job: &'w Job, gpus: usize) {
        self.running += 1;
        *self.running_by_user.entry(&job.submitted_by).or_default() += 1;
        self.shares.add_job(job, gpus);
    }

    /// Returns the worker at a position; none after the last one.
    pub fn nth(&mut self, position: usize) -> Option<&mut Candidate<'w>> {
        let index = self.nth_index(position)?;
        self.candidates.get_mut(index)
    }

    /// Returns the index of the worker at a position; none after the last one.
    pub(super) fn nth_index(&mut self, position: usize) -> Option<usize> {
        let missing = (position + 1).saturating_sub(self.order.len());
        self.load(missing);
        self.order.get(position).copied()
    }

    /// Returns the index of the changed worker at a position; none after the last one.
    pub(super) fn nth_changed_index(&self, position: usize) -> Option<usize> {
        (position < self.changed.len()).then_some(position)
    }

    /// Loads all workers.
    pub fn load_all(&mut self) {
        self.load(usize::MAX);
    }

    fn load(&mut self, number: usize) {
        for candidate in self.not_loaded.by_ref().take(number) {
            let changed = if self.changed.is_empty() { None } else { self.changed.get(&candidate.worker.id) };
            self.order.push(changed.copied().unwrap_or(self.candidates.len()));
            if changed.is_none() {
                self.candidates.push(candidate.restricted(self.use_reported_labels));
            }
        }
    }
}
