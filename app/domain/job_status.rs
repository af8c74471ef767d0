//! The statuses of a job: one row of facts for each. Code that treats statuses differently asks these facts, so that a
//! new status needs a row here and no decision elsewhere.

use crate::words::wire_words;

wire_words!(
    /// The status of a job.
    JobStatus {
        /// Waits for a worker.
        Queued = "queued",
        /// Offered to a worker that has not accepted it yet; clients that do not know it treat it as queued.
        Offered = "offered",
        /// The worker prepares the trainer.
        Starting = "starting",
        /// The trainer runs.
        Running = "running",
        /// A user cancelled it; the worker has not confirmed yet.
        Cancelling = "cancelling",
        /// The trainer exited successfully.
        Completed = "completed",
        /// The trainer failed, or all retries are used up.
        Failed = "failed",
        /// Cancelled by a user.
        Cancelled = "cancelled",
    }
);

wire_words!(
    /// A phase of a job.
    JobPhase {
        /// It has not ended.
        Active = "active",
        /// `queued` or `offered`.
        Waiting = "waiting",
        /// `starting`, `running` or `cancelling`.
        Running = "running",
        /// It has ended.
        Ended = "ended",
    }
);

/// Whether a job has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOutcome {
    /// It may still complete.
    Open,
    /// It has completed.
    Completed,
    /// It has not completed and will not.
    NotCompleted,
}

/// What happens to a job that a user cancels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelEffect {
    /// It ends immediately: no trainer of it runs.
    Ends,
    /// Its worker stops the trainer.
    StopsTrainer,
    /// Nothing: it was cancelled before.
    AlreadyStopping,
    /// It is rejected: the job has ended.
    AlreadyEnded,
}

/// What is true of all jobs with a status.
struct StatusFacts {
    /// Waiting, running or ended.
    phase: JobPhase,
    /// Whether an attempt has the lease, which occupies a slot and GPUs of a worker.
    has_lease: bool,
    outcome: JobOutcome,
}

impl JobStatus {
    const fn facts(self) -> StatusFacts {
        let (phase, has_lease, outcome) = match self {
            Self::Queued => (JobPhase::Waiting, false, JobOutcome::Open),
            Self::Offered => (JobPhase::Waiting, true, JobOutcome::Open),
            Self::Starting | Self::Running => (JobPhase::Running, true, JobOutcome::Open),
            Self::Cancelling => (JobPhase::Running, true, JobOutcome::NotCompleted),
            Self::Completed => (JobPhase::Ended, false, JobOutcome::Completed),
            Self::Failed | Self::Cancelled => (JobPhase::Ended, false, JobOutcome::NotCompleted),
        };
        StatusFacts { phase, has_lease, outcome }
    }

    /// Returns the phase: waiting, running or ended.
    pub const fn phase(self) -> JobPhase {
        self.facts().phase
    }

    /// Returns whether the status belongs to this phase.
    pub const fn is_in_phase(self, phase: JobPhase) -> bool {
        match phase {
            JobPhase::Active => !self.is_terminal(),
            JobPhase::Waiting => matches!(self.phase(), JobPhase::Waiting),
            JobPhase::Running => matches!(self.phase(), JobPhase::Running),
            JobPhase::Ended => self.is_terminal(),
        }
    }

    /// Returns whether the status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self.phase(), JobPhase::Ended)
    }

    /// Returns whether an attempt has the lease of the job.
    pub const fn has_lease(self) -> bool {
        self.facts().has_lease
    }

    /// Returns whether the job has completed.
    pub const fn outcome(self) -> JobOutcome {
        self.facts().outcome
    }

    /// Returns whether the trainer runs, or will soon: its newest message describes its progress.
    pub const fn is_at_work(self) -> bool {
        matches!((self.phase(), self.outcome()), (JobPhase::Running, JobOutcome::Open))
    }

    /// Returns the effect of a cancel.
    pub const fn cancel_effect(self) -> CancelEffect {
        match (self.phase(), self.outcome()) {
            (JobPhase::Ended, _) => CancelEffect::AlreadyEnded,
            (JobPhase::Waiting, _) => CancelEffect::Ends,
            (JobPhase::Active | JobPhase::Running, JobOutcome::Open) => CancelEffect::StopsTrainer,
            (JobPhase::Active | JobPhase::Running, _) => CancelEffect::AlreadyStopping,
        }
    }
}
