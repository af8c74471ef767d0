//! The state of a job, and what other code asks of it.
//!
//! Ask [`JobState::lease`], [`JobState::waiting`] and [`JobState::status`] instead of comparing states: then other code
//! needs no change for a new state. Each `match` here and in the transitions names all states, so that the compiler
//! finds what a new one must decide.

#[cfg(any(test, feature = "native"))]
use super::super::causes::OfflineCause;
#[cfg(any(test, feature = "native"))]
use super::super::ids::JobId;
use super::super::ids::{AttemptNumber, WorkerId};
use super::super::job_status::JobStatus;
use super::super::time::{Millis, Timestamp};
#[cfg(any(test, feature = "native"))]
use super::preemption::{PreemptedAttempt, PreemptionReason};
use super::{AttemptLoss, Job, JobFailure, Preemption};

/// The right of an attempt to run: a worker and its GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The worker.
    pub worker: WorkerId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// UUIDs of the allocated GPUs.
    pub gpus: Vec<String>,
    /// When it was offered.
    pub since: Timestamp,
}

impl Lease {
    /// Returns the UUIDs of the allocated GPUs.
    pub fn gpu_uuids(&self) -> Vec<&str> {
        self.gpus.iter().map(String::as_str).collect()
    }
}

/// The previous attempt of a job that is pending again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousAttempt {
    /// Its lease.
    pub lease: Lease,
    /// How it was lost; none if its offer was not accepted.
    pub loss: Option<AttemptLoss>,
}

/// What all states have in common in which a job waits and no attempt has its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Since when.
    pub since: Timestamp,
    /// Earliest time of the next offer (back-off after a loss).
    pub not_before: Option<Timestamp>,
    /// The previous attempt: it can be recovered until a newer one is offered (I1).
    pub previous: Option<PreviousAttempt>,
    /// The attempts that are stopped so that the job can start.
    pub preemption: Option<Box<Preemption>>,
}

impl Waiting {
    /// Returns how the previous attempt was lost, if it was.
    pub fn loss(&self) -> Option<&AttemptLoss> {
        self.previous.as_ref()?.loss.as_ref()
    }

    /// Returns whether the agent of the previous attempt has reported its end.
    pub(super) const fn has_reported_end(&self) -> bool {
        match &self.previous {
            Some(PreviousAttempt { loss: Some(loss), .. }) => loss.is_reported_by_agent(),
            _ => false,
        }
    }
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState {
    /// Waits for a worker.
    Queued(Waiting),
    /// Offered to a worker that has not accepted it yet.
    Offered {
        /// The offered lease.
        lease: Lease,
        /// Since when.
        since: Timestamp,
        /// When the offer expires.
        until: Timestamp,
    },
    /// The worker accepted it and prepares the trainer.
    Starting {
        /// The lease.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// The trainer runs.
    Running {
        /// The lease.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// A user cancelled it; the worker has not confirmed yet.
    Cancelling {
        /// The lease.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// The trainer exited successfully.
    Completed {
        /// When it ended.
        at: Timestamp,
        /// The last lease.
        lease: Lease,
    },
    /// The job failed.
    Failed {
        /// When it ended.
        at: Timestamp,
        /// The last lease.
        lease: Lease,
        /// The reason.
        failure: JobFailure,
    },
    /// A user cancelled it.
    Cancelled {
        /// When it ended.
        at: Timestamp,
        /// The last lease, if there was one.
        lease: Option<Lease>,
    },
}

/// The lease of a job in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState<'s> {
    /// No attempt has it: the job waits.
    Waiting(&'s Waiting),
    /// An attempt has it, and occupies a slot and GPUs of a worker.
    Active(&'s Lease),
    /// The job has ended; the last lease, if there was one.
    Ended(Option<&'s Lease>),
}

impl JobState {
    /// Returns the status.
    pub const fn status(&self) -> JobStatus {
        match self {
            Self::Queued(_) => JobStatus::Queued,
            Self::Offered { .. } => JobStatus::Offered,
            Self::Starting { .. } => JobStatus::Starting,
            Self::Running { .. } => JobStatus::Running,
            Self::Cancelling { .. } => JobStatus::Cancelling,
            Self::Completed { .. } => JobStatus::Completed,
            Self::Failed { .. } => JobStatus::Failed,
            Self::Cancelled { .. } => JobStatus::Cancelled,
        }
    }

    /// Returns its name in the database.
    pub const fn as_str(&self) -> &'static str {
        self.status().as_str()
    }

    /// Returns the lease.
    pub const fn lease(&self) -> LeaseState<'_> {
        match self {
            Self::Queued(waiting) => LeaseState::Waiting(waiting),
            Self::Offered { lease, .. }
            | Self::Starting { lease, .. }
            | Self::Running { lease, .. }
            | Self::Cancelling { lease, .. } => LeaseState::Active(lease),
            Self::Completed { lease, .. } | Self::Failed { lease, .. } => LeaseState::Ended(Some(lease)),
            Self::Cancelled { lease, .. } => LeaseState::Ended(lease.as_ref()),
        }
    }

    /// Returns the data of a job that waits without a lease, in the queue or not.
    pub const fn waiting(&self) -> Option<&Waiting> {
        match self.lease() {
            LeaseState::Waiting(waiting) => Some(waiting),
            LeaseState::Active(_) | LeaseState::Ended(_) => None,
        }
    }

    /// Returns a state with this status and all of its data, for tests.
    #[cfg(any(test, feature = "native"))]
    pub fn example(status: JobStatus, lease: Lease, since: Timestamp) -> Self {
        let loss = AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout);
        match status {
            JobStatus::Queued => {
                let previous = Some(PreviousAttempt { lease, loss: Some(loss) });
                let attempt = PreemptedAttempt { job: example_job(), attempt: AttemptNumber(3), stop_at: since };
                let preemption = Preemption {
                    worker: example_worker(),
                    reason: PreemptionReason::Guaranteed,
                    decided_at: since,
                    attempts: vec![attempt],
                };
                let not_before = Some(since + Millis::from_secs(10));
                Self::Queued(Waiting { since, not_before, previous, preemption: Some(Box::new(preemption)) })
            }
            JobStatus::Offered => Self::Offered { lease, since, until: since + Millis::from_secs(30) },
            JobStatus::Starting => Self::Starting { lease, since },
            JobStatus::Running => Self::Running { lease, since },
            JobStatus::Cancelling => Self::Cancelling { lease, since },
            JobStatus::Completed => Self::Completed { at: since, lease },
            JobStatus::Failed => Self::Failed { at: since, lease, failure: JobFailure::Lost(loss) },
            JobStatus::Cancelled => Self::Cancelled { at: since, lease: Some(lease) },
        }
    }

    /// Returns how the last attempt was lost, if the job waits or failed because of it.
    pub fn loss(&self) -> Option<&AttemptLoss> {
        if let Self::Failed { failure: JobFailure::Lost(loss), .. } = self {
            return Some(loss);
        }
        self.waiting()?.loss()
    }

    const fn since(&self) -> Timestamp {
        match self {
            Self::Queued(waiting) => waiting.since,
            Self::Offered { since, .. }
            | Self::Starting { since, .. }
            | Self::Running { since, .. }
            | Self::Cancelling { since, .. } => *since,
            Self::Completed { at, .. } | Self::Failed { at, .. } | Self::Cancelled { at, .. } => *at,
        }
    }
}

#[cfg(any(test, feature = "native"))]
fn example_job() -> JobId {
    JobId::new(Timestamp(1_705_314_600_000), [8; 10])
}

#[cfg(any(test, feature = "native"))]
fn example_worker() -> WorkerId {
    WorkerId::new(Timestamp(1_705_314_600_000), [8; 10])
}

/// What a worker's agent should do with an attempt that has a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOrder {
    /// Accept the offer.
    Accept,
    /// Run it.
    Run,
    /// Stop it.
    Stop(StopCause),
}

/// Why an attempt that has a lease must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A user cancelled the job.
    Cancelled,
    /// The trainer has exceeded the job's time limit.
    RuntimeExceeded,
    /// The deadline of its worker's drain has passed.
    Drained,
    /// Another job starts on its GPUs.
    Preempted,
}

impl Job {
    /// Returns the active lease, which occupies a slot and GPUs of a worker.
    pub const fn active_lease(&self) -> Option<&Lease> {
        match self.state.lease() {
            LeaseState::Active(lease) => Some(lease),
            LeaseState::Waiting(_) | LeaseState::Ended(_) => None,
        }
    }

    /// Returns whether its lease includes the GPU with this UUID.
    pub fn holds_gpu(&self, uuid: &str) -> bool {
        self.active_lease().is_some_and(|lease| lease.gpus.iter().any(|gpu| gpu == uuid))
    }

    /// Returns the newest lease, active or not.
    pub fn last_lease(&self) -> Option<&Lease> {
        match self.state.lease() {
            LeaseState::Waiting(waiting) => waiting.previous.as_ref().map(|previous| &previous.lease),
            LeaseState::Active(lease) => Some(lease),
            LeaseState::Ended(lease) => lease,
        }
    }

    /// Returns since when the job has this state.
    pub const fn state_since(&self) -> Timestamp {
        self.state.since()
    }

    /// Returns whether the state is terminal.
    pub const fn has_ended(&self) -> bool {
        matches!(self.state.lease(), LeaseState::Ended(_))
    }

    /// Returns whether the job is in the queue, and so may be offered to a worker.
    pub const fn is_queued(&self) -> bool {
        matches!(self.state, JobState::Queued(_))
    }

    /// Returns the earliest time of the next offer, if it is delayed: by back-off, or because a trainer of an exclusive
    /// job may still run.
    pub fn earliest_offer(&self) -> Option<Timestamp> {
        self.state.waiting()?.not_before.max(self.hold_until)
    }

    /// Returns the time limit if the trainer has exceeded it: it must be stopped, and the job has failed.
    pub fn exceeded_runtime(&self, now: Timestamp) -> Option<Millis> {
        let JobState::Running { since, .. } = &self.state else { return None };
        self.spec.max_runtime.filter(|allowed| *since + *allowed <= now)
    }

    /// Returns what the agent of a worker with an active lease should do; `evicts` if the deadline of its drain has
    /// passed, `is_preempted` if another job is to start on its GPUs now.
    pub fn order(&self, now: Timestamp, evicts: bool, is_preempted: bool) -> Option<(&Lease, AttemptOrder)> {
        let lease = self.active_lease()?;
        let order = match self.state {
            JobState::Offered { .. } => AttemptOrder::Accept,
            JobState::Cancelling { .. } => AttemptOrder::Stop(StopCause::Cancelled),
            JobState::Running { .. } if self.exceeded_runtime(now).is_some() => {
                AttemptOrder::Stop(StopCause::RuntimeExceeded)
            }
            JobState::Starting { .. } | JobState::Running { .. } if evicts => AttemptOrder::Stop(StopCause::Drained),
            JobState::Starting { .. } | JobState::Running { .. } if is_preempted => {
                AttemptOrder::Stop(StopCause::Preempted)
            }
            JobState::Starting { .. } | JobState::Running { .. } => AttemptOrder::Run,
            JobState::Queued(_) | JobState::Completed { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                return None;
            }
        };
        Some((lease, order))
    }
}
