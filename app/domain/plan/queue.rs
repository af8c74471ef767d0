//! The order in which jobs are planned, and what they have in common.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::AGING_PER_POINT;
use crate::domain::ids::JobId;
use crate::domain::job::{Job, JobSpec, JobTarget};
use crate::domain::labels::Labels;
use crate::domain::sandbox::SandboxLevel;
use crate::domain::time::Timestamp;

/// The sort key of a job; smaller keys come first.
pub fn job_sort_key(job: &Job) -> (Reverse<i64>, Timestamp, &JobId) {
    (Reverse(urgency(job)), job.submitted_at, &job.id)
}

/// The urgency of a job; higher comes first, and of equal values the older job. It does not depend on the current time,
/// because all pending jobs age equally.
pub fn urgency(job: &Job) -> i64 {
    i64::from(job.priority) * AGING_PER_POINT.0 - job.submitted_at.0
}

/// The requirements of a job, as a key.
pub type DemandKey<'w> =
    (JobTarget, &'w Labels, Option<u32>, Option<u64>, Option<&'w str>, SandboxLevel, bool, [&'w [String]; 2]);

/// Returns the part of a job's requirements that decides which workers it matches.
pub fn demand_key(spec: &JobSpec) -> DemandKey<'_> {
    let demand = &spec.demand;
    let vram = demand.min_vram_gb.map(f64::to_bits);
    let accelerator = demand.accelerator.as_deref();
    (
        spec.target,
        &demand.labels,
        demand.gpu_count,
        vram,
        accelerator,
        demand.sandbox,
        spec.exclusive,
        [&spec.files, &spec.paths],
    )
}

/// What decides, besides its age, whether a job gets a worker: user, priority, requirements.
pub type JobKind<'w> = (&'w str, u8, DemandKey<'w>);

/// Returns the kind of a job.
pub fn job_kind(job: &Job) -> JobKind<'_> {
    (&job.submitted_by, job.priority, demand_key(&job.spec))
}

/// The queued jobs in the order of [`job_sort_key`], so that jobs of one kind come in the order of their age.
pub struct JobQueue<'w> {
    pub(super) jobs: Box<dyn Iterator<Item = QueuedJob<'w>> + 'w>,
    /// The number of kinds.
    pub(super) kinds: usize,
}

/// A job in the queue.
pub struct QueuedJob<'w> {
    /// The job.
    pub job: &'w Job,
    /// A small number; jobs with the same number are of one [`JobKind`].
    pub kind: usize,
}

impl<'w> JobQueue<'w> {
    /// Sorts jobs and numbers their kinds.
    pub fn new(jobs: impl IntoIterator<Item = &'w Job>) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |job: &'w Job| {
            let next = numbers.len();
            *numbers.entry(job_kind(job)).or_insert(next)
        };
        let mut jobs: Vec<QueuedJob<'w>> = jobs.into_iter().map(|job| QueuedJob { job, kind: number(job) }).collect();
        jobs.sort_by_cached_key(|queued| job_sort_key(queued.job));
        Self { jobs: Box::new(jobs.into_iter()), kinds: numbers.len() }
    }

    /// The queue of sorted jobs with this number of kinds.
    pub fn from_sorted(jobs: impl Iterator<Item = QueuedJob<'w>> + 'w, kinds: usize) -> Self {
        Self { jobs: Box::new(jobs), kinds }
    }
}
