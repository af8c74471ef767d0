//! Why attempts and jobs fail.

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
    WorkerOffline,
    /// The agent stopped it for reasons other than the job (shutdown, exit code 75, …).
    Requeued(String),
    /// The deadline of its worker's drain passed.
    Evicted,
    /// The trainer failed, and the submit allows retries on failure.
    TrainerFailed {
        /// The exit code.
        exit_code: Option<i32>,
        /// The error text.
        error: String,
    },
}
