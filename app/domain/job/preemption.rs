//! Which running jobs are stopped for a waiting one.

use super::{Job, JobState, Waiting};
use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::domain::time::{Millis, Timestamp};

/// Freed GPUs are reserved until this time after the last stop.
const RESERVED_FOR: Millis = Millis::from_secs(300);
/// A job that was stopped this often within a day is stopped for no other one.
pub const MAX_PREEMPTIONS_PER_DAY: usize = 3;
const DAY: Millis = Millis::from_secs(86_400);

/// Why a job may stop others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreemptionReason {
    /// The others are idle jobs.
    Idle,
    /// Its team is guaranteed the GPUs, which another one has borrowed.
    Guaranteed,
    /// It is urgent.
    Urgent,
    /// The others have had their turn.
    Turn,
}

impl PreemptionReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Guaranteed, Self::Urgent, Self::Turn];

    /// Returns its name in the database and in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Guaranteed => "guaranteed",
            Self::Urgent => "urgent",
            Self::Turn => "turn",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// An attempt that is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptedAttempt {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// When it stops; earlier, once it has a new checkpoint.
    pub stop_at: Timestamp,
}

/// Which attempts are stopped for a job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// Their worker, which is reserved for the job.
    pub worker: WorkerId,
    /// Why.
    pub reason: PreemptionReason,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// The attempts.
    pub attempts: Vec<PreemptedAttempt>,
}

impl Preemption {
    /// Returns when the last attempt stops.
    pub fn last_stop(&self) -> Timestamp {
        self.attempts.iter().map(|attempt| attempt.stop_at).max().unwrap_or(self.decided_at)
    }

    /// Returns whether the worker is still reserved: otherwise an attempt has not stopped, or its GPUs have vanished.
    pub fn holds(&self, now: Timestamp) -> bool {
        now <= self.last_stop() + RESERVED_FOR
    }

    /// Stops an attempt immediately, because it has a checkpoint.
    #[must_use]
    pub fn with_checkpoint(mut self, job: &JobId, now: Timestamp) -> Self {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.job == *job) {
            attempt.stop_at = attempt.stop_at.min(now);
        }
        self
    }
}

impl Job {
    /// Returns the attempts that are stopped for this job, while it waits.
    pub fn preemption(&self) -> Option<&Preemption> {
        self.state.waiting()?.preemption.as_deref()
    }

    /// Lets a waiting job stop others.
    #[must_use]
    pub fn preempting(self, preemption: Option<Preemption>) -> Self {
        match self.state {
            JobState::Queued(waiting) => {
                let waiting = Waiting { preemption: preemption.map(Box::new), ..waiting };
                Self { state: JobState::Queued(waiting), ..self }
            }
            _ => self,
        }
    }

    /// Returns whether it has been stopped so often within a day that it now stays.
    pub fn is_protected_from_preemption(&self, now: Timestamp) -> bool {
        self.preempted_at.iter().filter(|at| now - **at < DAY).count() >= MAX_PREEMPTIONS_PER_DAY
    }
}
