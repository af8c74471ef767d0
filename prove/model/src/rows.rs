//! The stored state in a compact form that converts to the types of the rules and back.
//!
//! Left out is what no rule of the model reads: the exact reason of a loss, since when a job has its state, names and labels. All
//! conversions back check that nothing else is lost.

use app::domain::causes::OfflineCause;
use app::domain::ids::{AttemptNumber, JobId, WorkerId};
use app::domain::job::{AttemptLoss, Demand, Job, JobFailure, JobSpec, JobState, Lease, PreviousAttempt, Waiting};
use app::domain::time::Timestamp;

use crate::config::JobShape;
use crate::ticks::{NOW, Ticks, approach, ticks, timestamp};

/// A job and the number of an attempt.
pub type Key = (u8, u8);

/// A lease; GPUs as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseRow {
    pub worker: u8,
    pub attempt: u8,
    pub gpus: u8,
}

/// How the previous attempt was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossRow {
    /// Its agent was silent, or did not know it.
    Silent,
    /// Its agent reported that it has stopped.
    Reported,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobRowState {
    Queued { not_before: Option<Ticks>, previous: Option<LeaseRow>, loss: Option<LossRow> },
    Offered { lease: LeaseRow, until: Ticks },
    Starting(LeaseRow),
    Running(LeaseRow),
    Cancelling(LeaseRow),
    Completed(LeaseRow),
    Failed { lease: LeaseRow, by_trainer: bool },
    Cancelled(Option<LeaseRow>),
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobRow {
    pub attempt: u8,
    pub losses: u8,
    pub retry_of: Option<u8>,
    pub hold_until: Option<Ticks>,
    pub state: JobRowState,
}

/// Returns the ID of the n-th worker.
pub fn worker_id(n: usize) -> WorkerId {
    WorkerId::parse(["w0", "w1"][n]).expect("a valid ID")
}

/// Returns the index of a worker.
pub fn worker_index(id: &WorkerId) -> u8 {
    index(id.as_str())
}

/// Returns the ID of the n-th job.
pub fn job_id(n: usize) -> JobId {
    JobId::parse(["j0", "j1", "j2"][n]).expect("a valid ID")
}

/// Returns the index of a job.
pub fn job_index(id: &JobId) -> u8 {
    index(id.as_str())
}

/// Returns the UUID of a worker's GPU.
pub fn gpu_uuid(worker: usize, gpu: u8) -> String {
    format!("w{worker}g{gpu}")
}

/// IDs end in a digit.
fn index(id: &str) -> u8 {
    id.as_bytes()[id.len() - 1] - b'0'
}

/// Returns GPUs as bits.
pub fn gpu_bits(uuids: &[String]) -> u8 {
    uuids.iter().fold(0, |bits, uuid| bits | 1 << index(uuid))
}

impl LeaseRow {
    fn from_lease(lease: &Lease) -> Self {
        let attempt = u8::try_from(lease.attempt.0).expect("few attempts");
        Self { worker: worker_index(&lease.worker), attempt, gpus: gpu_bits(&lease.gpus) }
    }

    fn to_lease(self) -> Lease {
        let worker = usize::from(self.worker);
        let gpus = (0..8).filter(|gpu| self.gpus >> gpu & 1 == 1).map(|gpu| gpu_uuid(worker, gpu)).collect();
        Lease { worker: worker_id(worker), attempt: AttemptNumber(self.attempt.into()), gpus, since: NOW }
    }
}

impl JobRow {
    /// Converts a job of the rules.
    pub fn from_job(job: &Job) -> Self {
        let lease = LeaseRow::from_lease;
        let state = match &job.state {
            JobState::Queued(Waiting { not_before, previous, .. }) => JobRowState::Queued {
                not_before: not_before.map(deadline),
                previous: previous.as_ref().map(|previous| lease(&previous.lease)),
                loss: previous.as_ref().and_then(|previous| previous.loss.as_ref()).map(LossRow::from_loss),
            },
            JobState::Offered { lease: offered, until, .. } => {
                JobRowState::Offered { lease: lease(offered), until: deadline(*until) }
            }
            JobState::Starting { lease: active, .. } => JobRowState::Starting(lease(active)),
            JobState::Running { lease: active, .. } => JobRowState::Running(lease(active)),
            JobState::Cancelling { lease: active, .. } => JobRowState::Cancelling(lease(active)),
            JobState::Completed { lease: last, .. } => JobRowState::Completed(lease(last)),
            JobState::Failed { lease: last, failure, .. } => {
                JobRowState::Failed { lease: lease(last), by_trainer: matches!(failure, JobFailure::Trainer { .. }) }
            }
            JobState::Cancelled { lease: last, .. } => JobRowState::Cancelled(last.as_ref().map(lease)),
        };
        Self {
            attempt: u8::try_from(job.attempt.0).expect("few attempts"),
            losses: u8::try_from(job.losses).expect("few losses"),
            retry_of: job.retry_of.as_ref().map(job_index),
            hold_until: job.hold_until.map(deadline),
            state,
        }
    }

    /// Converts to a job of the rules.
    pub fn to_job(self, n: usize, shape: &JobShape) -> Job {
        let since = NOW;
        let state = match self.state {
            JobRowState::Queued { not_before, previous, loss } => JobState::Queued(Waiting {
                since,
                not_before: not_before.map(timestamp),
                previous: previous
                    .map(|lease| PreviousAttempt { lease: lease.to_lease(), loss: loss.map(LossRow::to_loss) }),
                preemption: None,
            }),
            JobRowState::Offered { lease, until } => {
                JobState::Offered { lease: lease.to_lease(), since, until: timestamp(until) }
            }
            JobRowState::Starting(lease) => JobState::Starting { lease: lease.to_lease(), since },
            JobRowState::Running(lease) => JobState::Running { lease: lease.to_lease(), since },
            JobRowState::Cancelling(lease) => JobState::Cancelling { lease: lease.to_lease(), since },
            JobRowState::Completed(lease) => JobState::Completed { at: since, lease: lease.to_lease() },
            JobRowState::Failed { lease, by_trainer } => {
                let trainer = JobFailure::Trainer { exit_code: Some(1), error: String::new() };
                let failure = if by_trainer { trainer } else { JobFailure::Lost(LossRow::Silent.to_loss()) };
                JobState::Failed { at: since, lease: lease.to_lease(), failure }
            }
            JobRowState::Cancelled(lease) => JobState::Cancelled { at: since, lease: lease.map(LeaseRow::to_lease) },
        };
        let job = Job {
            attempt: AttemptNumber(self.attempt.into()),
            losses: self.losses.into(),
            retry_of: self.retry_of.map(|retried| job_id(retried.into())),
            hold_until: self.hold_until.map(timestamp),
            state,
            ..submitted(n, shape)
        };
        assert_eq!(Self::from_job(&job), self, "the conversion loses nothing");
        job
    }

    /// Returns the lease that occupies a worker.
    pub fn active_lease(&self) -> Option<LeaseRow> {
        match self.state {
            JobRowState::Offered { lease, .. }
            | JobRowState::Starting(lease)
            | JobRowState::Running(lease)
            | JobRowState::Cancelling(lease) => Some(lease),
            JobRowState::Queued { .. }
            | JobRowState::Completed(_)
            | JobRowState::Failed { .. }
            | JobRowState::Cancelled(_) => None,
        }
    }

    /// Returns whether the state is terminal.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, JobRowState::Completed(_) | JobRowState::Failed { .. } | JobRowState::Cancelled(_))
    }

    /// Returns whether a pass over offers may change it.
    pub fn is_due(&self) -> bool {
        match self.state {
            JobRowState::Queued { not_before, .. } => not_before.max(self.hold_until).is_none_or(|at| at <= 0),
            JobRowState::Offered { until, .. } => until <= 0,
            _ => false,
        }
    }

    /// Lets a tick pass.
    pub fn tick(&mut self) {
        self.hold_until.iter_mut().for_each(approach);
        match &mut self.state {
            JobRowState::Queued { not_before, .. } => not_before.iter_mut().for_each(approach),
            JobRowState::Offered { until, .. } => approach(until),
            _ => {}
        }
    }
}

/// The n-th job, as it is submitted. Earlier ones are older.
pub fn submitted(n: usize, shape: &JobShape) -> Job {
    let demand = Demand { gpu_count: shape.gpus, ..Demand::default() };
    let spec = JobSpec {
        demand,
        exclusive: shape.exclusive,
        max_retries: shape.max_retries,
        retry_on_failure: shape.retry_on_failure,
        ..JobSpec::new("c", 1)
    };
    let at = Timestamp(NOW.0 - 1_000 + i64::try_from(n).expect("few jobs"));
    let job = Job::submitted(job_id(n), spec, NOW, "u".to_owned());
    Job { submitted_at: at, ..job }
}

impl LossRow {
    const fn from_loss(loss: &AttemptLoss) -> Self {
        match loss {
            AttemptLoss::UnknownToAgent | AttemptLoss::WorkerOffline(_) | AttemptLoss::NeverStarted => Self::Silent,
            AttemptLoss::Requeued(_)
            | AttemptLoss::Evicted
            | AttemptLoss::Preempted { .. }
            | AttemptLoss::StoppedByAgent
            | AttemptLoss::TrainerFailed { .. } => Self::Reported,
        }
    }

    const fn to_loss(self) -> AttemptLoss {
        match self {
            Self::Silent => AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout),
            Self::Reported => AttemptLoss::StoppedByAgent,
        }
    }
}

fn deadline(at: Timestamp) -> Ticks {
    ticks(at).max(0)
}
