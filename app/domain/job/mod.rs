//! A job's life: `Queued → Offered → Starting → Running → Completed | Failed | Cancelled`, with `Cancelling` on the
//! way to the last. A lost attempt goes back to `Queued`; a terminal state never changes (invariant I2).

mod failure;
mod overrides;
mod start;
mod transitions;

#[cfg(test)]
mod tests;

pub use failure::{Failure, Loss};
pub use overrides::{Override, Overrides};
pub use start::{SavedBy, Start};

use super::ids::{Attempt, JobId, WorkerId};
use super::labels::Labels;
use super::sandbox::SandboxLevel;
use super::time::{Millis, Timestamp};
use super::trace::Trace;

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// What was asked for.
    pub spec: Spec,
    /// When it was submitted. First come, first served.
    pub submitted_at: Timestamp,
    /// By whom.
    pub submitted_by: String,
    /// The newest attempt that was offered; 0 before the first.
    pub attempt: Attempt,
    /// How many attempts were lost.
    pub losses: u32,
    /// How urgent it is, 0 to [`MAX_PRIORITY`](super::queue::MAX_PRIORITY).
    pub priority: u8,
    /// The job that this one tries again.
    pub retry_of: Option<JobId>,
    /// The trace that it belongs to.
    pub trace: Option<Trace>,
    /// Of an exclusive job whose attempt was lost without its agent's word: a trainer may run until then, so no other
    /// begins before.
    pub kept_back: Option<Timestamp>,
    /// Where it stands.
    pub state: State,
}

/// What was asked for at the submit; it never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The configuration.
    pub config_name: String,
    /// Its revision, pinned.
    pub config_revision: u32,
    /// Where it may run.
    pub target: Target,
    /// What the worker must be like.
    pub demand: Demand,
    /// How many processes the trainer is to start, if the configuration says so.
    pub num_processes: Option<u32>,
    /// How many lost attempts are tried again.
    pub max_retries: u32,
    /// Whether the trainer's own failure counts as a loss too.
    pub retry_on_failure: bool,
    /// How long the trainer of an attempt may run.
    pub max_runtime: Option<Millis>,
    /// Whether no two trainers of it may ever run at once: an agent that loses contact stops its own in time, and no
    /// attempt begins before that time is over.
    pub exclusive: bool,
    /// Which checkpoints are sent to the orchestrator.
    pub checkpoints: Checkpoints,
    /// The secrets that it is given, by name; none (of a job of an earlier version) for every one that its owner can use.
    pub secrets: Option<Vec<String>>,
    /// Whether the job gets shared secrets only: another person retried it and named no secrets of their own.
    pub shared_secrets_only: bool,
    /// Files that the configuration names beside its data loader. Older agents are sent neither these nor their names.
    pub files: Vec<String>,
    /// The names of directories of the host that the configuration needs: `data_root`.
    pub paths: Vec<String>,
    /// Values of the configuration that this job changes.
    pub overrides: Overrides,
    /// Where a job that is run again begins.
    pub start: Start,
}

/// Where a job may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Remote workers first, then the orchestrator's own GPUs.
    Auto,
    /// Remote workers only.
    Worker,
    /// The orchestrator's own GPUs only.
    Local,
}

impl Target {
    /// Its word: in the database, on the wire and on the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Worker => "worker",
            Self::Local => "local",
        }
    }
}

/// Which of the trainer's checkpoints the orchestrator is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checkpoints {
    /// None: an attempt on another worker begins at the beginning.
    None,
    /// The newest.
    #[default]
    Last,
    /// Every one.
    All,
}

impl Checkpoints {
    /// Its word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }
}

/// What a worker must be like.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demand {
    /// Labels that must match; values are globs.
    pub labels: Labels,
    /// How many GPUs; none asks for one slot on any worker.
    pub gpu_count: Option<u32>,
    /// Least memory of each GPU in GB.
    pub min_vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: Option<String>,
    /// How closely it confines the trainer at least; a host's owner may want more.
    pub sandbox: SandboxLevel,
}

/// What an attempt holds: a worker and its GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The worker.
    pub worker: WorkerId,
    /// The attempt.
    pub attempt: Attempt,
    /// UUIDs of the granted GPUs.
    pub gpus: Vec<String>,
}

impl Lease {
    /// UUIDs of the granted GPUs, as the planner's ledger has them.
    pub fn held(&self) -> Vec<&str> {
        self.gpus.iter().map(String::as_str).collect()
    }
}

/// The attempt before, of a job that waits again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    /// What it held.
    pub lease: Lease,
    /// How it was lost; none if its offer was not answered.
    pub loss: Option<Loss>,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Waits for a worker.
    Queued {
        /// Since when.
        since: Timestamp,
        /// Not offered before this moment (back-off after a loss).
        not_before: Option<Timestamp>,
        /// The attempt before: until a newer one is offered it may come back (I1).
        previous: Option<Previous>,
    },
    /// Offered to a worker that has not answered.
    Offered {
        /// To whom.
        lease: Lease,
        /// Since when.
        since: Timestamp,
        /// The offer ends then.
        until: Timestamp,
    },
    /// The worker took it and prepares the trainer.
    Starting {
        /// Who has it.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// The trainer runs.
    Running {
        /// Who has it.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// A person cancelled it; the worker has not confirmed.
    Cancelling {
        /// Who has it.
        lease: Lease,
        /// Since when.
        since: Timestamp,
    },
    /// The trainer ended well.
    Completed {
        /// When.
        at: Timestamp,
        /// Who had it.
        lease: Lease,
    },
    /// It failed for good.
    Failed {
        /// When.
        at: Timestamp,
        /// Who had it last.
        lease: Lease,
        /// Why.
        failure: Failure,
    },
    /// A person cancelled it.
    Cancelled {
        /// When.
        at: Timestamp,
        /// Who had it, if anyone.
        lease: Option<Lease>,
    },
}

impl State {
    /// Its word: in the database, on the wire and on the page.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Offered { .. } => "offered",
            Self::Starting { .. } => "starting",
            Self::Running { .. } => "running",
            Self::Cancelling { .. } => "cancelling",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// What a worker says of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It takes the offer.
    Starting,
    /// The trainer runs.
    Running,
    /// The trainer ended with 0.
    Completed,
    /// The trainer failed.
    Failed {
        /// Its exit code.
        exit_code: Option<i32>,
        /// In its words.
        error: String,
    },
    /// It was stopped. Only a person's cancel makes this the end.
    Cancelled,
    /// It was stopped, and not by the job's fault.
    Requeue {
        /// Why.
        error: String,
    },
    /// It was stopped because a person's drain of its worker came to its deadline. It does not count as a loss.
    Evicted,
}

/// Why a transition is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The job has ended.
    Ended,
    /// The report is of an attempt that is no longer the job's.
    OldAttempt {
        /// The job's newest attempt.
        current: Attempt,
    },
    /// The attempt belongs to another worker, or was never offered.
    NotYours,
    /// Only a waiting job can be offered.
    NotQueued,
    /// Only what has ended can be tried again.
    NotEnded,
}

impl Demand {
    /// How many GPUs are asked for; none asks for a slot.
    pub fn gpus(&self) -> Option<u32> {
        self.gpu_count.or(self.min_vram_gb.map(|_| 1))
    }
}

impl Job {
    /// The lease that is in force: one worker's slot and GPUs are taken by it.
    pub fn live_lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Offered { lease, .. }
            | State::Starting { lease, .. }
            | State::Running { lease, .. }
            | State::Cancelling { lease, .. } => Some(lease),
            State::Queued { .. } | State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. } => None,
        }
    }

    /// The newest lease, in force or not.
    pub fn last_lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Queued { previous, .. } => previous.as_ref().map(|previous| &previous.lease),
            State::Cancelled { lease, .. } => lease.as_ref(),
            State::Offered { lease, .. }
            | State::Starting { lease, .. }
            | State::Running { lease, .. }
            | State::Cancelling { lease, .. }
            | State::Completed { lease, .. }
            | State::Failed { lease, .. } => Some(lease),
        }
    }

    /// Since when it stands where it stands.
    pub fn since(&self) -> Timestamp {
        match &self.state {
            State::Queued { since, .. }
            | State::Offered { since, .. }
            | State::Starting { since, .. }
            | State::Running { since, .. }
            | State::Cancelling { since, .. } => *since,
            State::Completed { at, .. } | State::Failed { at, .. } | State::Cancelled { at, .. } => *at,
        }
    }

    /// When it may be offered at the earliest, if not at once: after a loss, and where a trainer of it may still run.
    pub fn due(&self) -> Option<Timestamp> {
        match self.state {
            State::Queued { not_before, .. } => not_before.max(self.kept_back),
            _ => None,
        }
    }

    /// Whether its trainer has run as long as the submit allows: then it is to be stopped, and has failed.
    pub fn overdue(&self, now: Timestamp) -> Option<Millis> {
        let State::Running { since, .. } = &self.state else { return None };
        self.spec.max_runtime.filter(|allowed| *since + *allowed <= now)
    }

    /// Whether nothing follows.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. })
    }
}
