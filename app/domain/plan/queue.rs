//! The queued jobs by share, and what they have in common.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::AGING_PER_POINT;
use crate::domain::ids::JobId;
use crate::domain::job::{Job, JobSpec, JobTarget};
use crate::domain::job_share::JobClass;
use crate::domain::labels::Labels;
use crate::domain::sandbox::SandboxLevel;
use crate::domain::shares::{ShareQueue, ShareRotation, ShareTree, counted_gpus};
use crate::domain::time::Timestamp;

/// The sort key of a job among those of its share; smaller keys come first.
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

/// The waiting jobs that are in the order of [`job_sort_key`]: their class, team and user.
pub type QueueOf<'w> = (JobClass, &'w str, &'w str);

/// Returns whose queue a job is in.
pub fn queue_of(job: &Job) -> QueueOf<'_> {
    (job.spec.class, &job.spec.team, &job.submitted_by)
}

/// What decides, besides its age, whether a job gets a worker: its queue, priority and requirements.
pub type JobKind<'w> = (QueueOf<'w>, u8, DemandKey<'w>);

/// Returns the kind of a job.
pub fn job_kind(job: &Job) -> JobKind<'_> {
    (queue_of(job), job.priority, demand_key(&job.spec))
}

/// The queued jobs. Those of a share are in the order of [`job_sort_key`], so jobs of one kind come in the order of
/// their age.
pub struct JobQueue<'w> {
    pub(super) shares: Vec<ShareQueue<'w, QueuedJob<'w>>>,
    /// The number of kinds.
    pub(super) kinds: usize,
}

/// A job in the queue.
#[derive(Debug, Clone, Copy)]
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
        let jobs = jobs.into_iter().map(|job| QueuedJob { job, kind: number(job) }).collect();
        let kinds = numbers.len();
        Self::of_kinds(jobs, kinds)
    }

    /// Sorts jobs with this number of kinds.
    pub fn of_kinds(jobs: Vec<QueuedJob<'w>>, kinds: usize) -> Self {
        let mut shares: HashMap<QueueOf<'w>, Vec<QueuedJob<'w>>> = HashMap::new();
        for queued in jobs {
            shares.entry(queue_of(queued.job)).or_default().push(queued);
        }
        let sorted = shares.into_iter().map(|(of, mut jobs)| {
            jobs.sort_by_cached_key(|queued| job_sort_key(queued.job));
            share_queue(of, jobs.into_iter())
        });
        Self::from_sorted(sorted.collect(), kinds)
    }

    /// The queue of sorted jobs by share, with this number of kinds.
    pub const fn from_sorted(shares: Vec<ShareQueue<'w, QueuedJob<'w>>>, kinds: usize) -> Self {
        Self { shares, kinds }
    }

    /// Returns the jobs in the order in which they would start if each that starts used what it requires.
    pub fn in_order(self, mut shares: ShareTree<'w>) -> impl Iterator<Item = &'w Job> {
        let mut rotation = ShareRotation::new(self.shares, &mut shares);
        std::iter::from_fn(move || {
            let job = rotation.next(&shares)?.job;
            shares.add_job(job, counted_gpus(&job.spec.demand) as usize);
            Some(job)
        })
    }
}

/// The sorted jobs of a share.
pub fn share_queue<'w>(
    (class, team, user): QueueOf<'w>,
    jobs: impl Iterator<Item = QueuedJob<'w>> + 'w,
) -> ShareQueue<'w, QueuedJob<'w>> {
    ShareQueue { class, team, user, jobs: Box::new(jobs) }
}
