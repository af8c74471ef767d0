//! Why attempts and jobs fail.

use crate::domain::time::Millis;

/// Why an attempt, or a job, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The trainer, or the agent on its behalf, gave up.
    Trainer {
        /// Its exit code, 128 + signal if it was killed; none if it never started.
        exit_code: Option<i32>,
        /// In its words.
        error: String,
    },
    /// The attempt was lost more often than the retries allow.
    Lost(Loss),
    /// The trainer ran longer than the submit allowed.
    OverTime {
        /// How long that was.
        allowed: Millis,
    },
}

/// How an attempt was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// The agent came back without it.
    AgentForgot,
    /// The worker went offline with it.
    WorkerOffline,
    /// The agent stopped it, and not by the job's fault (shutdown, exit code 75, …).
    Requeued(String),
    /// Its worker's drain came to its deadline.
    Evicted,
    /// The trainer failed, and the submit said to try again.
    TrainerFailed {
        /// Its exit code.
        exit_code: Option<i32>,
        /// In its words.
        error: String,
    },
}
