//! Why attempts and jobs fail.

use crate::domain::causes::{LossCode, OfflineCause};
use crate::domain::ids::JobId;
use crate::domain::time::Millis;

/// Why an attempt or a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobFailure {
    /// The trainer failed, as reported by the trainer or the agent.
    Trainer {
        /// The exit code, 128 + signal if the trainer was killed; none if it never started.
        exit_code: Option<i32>,
        /// The error text.
        error: String,
    },
    /// Attempts were lost more often than the retries allow.
    Lost(AttemptLoss),
    /// The trainer exceeded its time limit.
    RuntimeExceeded {
        /// The time limit.
        allowed: Millis,
    },
}

/// Why an attempt was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptLoss {
    /// The agent registered again without it.
    UnknownToAgent,
    /// The worker went offline.
    WorkerOffline(OfflineCause),
    /// The agent stopped it for reasons other than the job (shutdown, exit code 75, …).
    Requeued(String),
    /// The deadline of its worker's drain passed.
    Evicted,
    /// It was stopped so that another job could start.
    Preempted {
        /// The other job.
        by: JobId,
        /// The work since its last checkpoint.
        lost: Millis,
        /// The step of that checkpoint, if there is one.
        step: Option<u64>,
    },
    /// The agent stopped it, and the server had not requested that.
    StoppedByAgent,
    /// An older agent accepted it and never started the trainer.
    NeverStarted,
    /// The trainer failed, and the submit allows retries on failure.
    TrainerFailed {
        /// The exit code.
        exit_code: Option<i32>,
        /// The error text.
        error: String,
    },
}

impl AttemptLoss {
    /// Returns whether the agent has reported that no process of the attempt is left.
    pub const fn is_reported_by_agent(&self) -> bool {
        match self {
            Self::Requeued(_)
            | Self::Evicted
            | Self::Preempted { .. }
            | Self::StoppedByAgent
            | Self::TrainerFailed { .. } => true,
            Self::UnknownToAgent | Self::WorkerOffline(_) | Self::NeverStarted => false,
        }
    }

    /// Returns its code.
    pub fn code(&self) -> LossCode {
        match self {
            Self::UnknownToAgent => LossCode::UnknownToAgent,
            Self::WorkerOffline(cause) => (*cause).into(),
            Self::Requeued(reason) if reason.is_empty() => LossCode::Returned,
            Self::Requeued(_) => LossCode::ReturnedWithReason,
            Self::Evicted => LossCode::Evicted,
            Self::Preempted { .. } => LossCode::Preempted,
            Self::StoppedByAgent => LossCode::StoppedByAgent,
            Self::NeverStarted => LossCode::NeverStarted,
            Self::TrainerFailed { .. } => LossCode::TrainerFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reason_of_the_agent_has_a_code_that_refers_to_it() {
        let returned = |reason: &str| AttemptLoss::Requeued(reason.to_owned()).code();
        assert_eq!((returned(""), returned("no CUDA")), (LossCode::Returned, LossCode::ReturnedWithReason));
        assert_eq!(AttemptLoss::WorkerOffline(OfflineCause::Disconnected).code(), LossCode::Disconnected);
    }
}
