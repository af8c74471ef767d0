//! The life cycle of a job. A lost attempt goes back to the queue; a terminal state never changes (invariant I2).

mod description;
mod failure;
pub mod family;
mod overrides;
mod preemption;
mod start_point;
mod state;
mod transitions;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use description::{DescriptionChange, JobDescription};
pub use failure::{AttemptLoss, JobFailure};
pub use overrides::{JobOverrides, OverriddenValue};
pub use preemption::{MAX_PREEMPTIONS_PER_DAY, PreemptedAttempt, Preemption, PreemptionReason};
pub use start_point::{CheckpointRef, StartPoint};
pub use state::{AttemptOrder, JobState, Lease, LeaseState, PreviousAttempt, StopCause, Waiting};

use super::ids::{AttemptNumber, JobId};
use super::job_share::{DEFAULT_TEAM, JobClass};
use super::labels::Labels;
use super::sandbox::SandboxLevel;
use super::time::{Millis, Timestamp};
use super::trace_context::TraceContext;

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job's ID.
    pub id: JobId,
    /// The requirements of the submit.
    pub spec: JobSpec,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// The user who submitted it.
    pub submitted_by: String,
    /// The number of the newest offered attempt; 0 before the first.
    pub attempt: AttemptNumber,
    /// Number of lost attempts.
    pub losses: u32,
    /// The priority, 0 to [`MAX_PRIORITY`](super::priority::MAX_PRIORITY).
    pub priority: u8,
    /// Its number among the jobs of its configuration, from 1; none if a version without numbers created it.
    pub number: Option<u32>,
    /// Its name, tags and notes.
    pub description: JobDescription,
    /// The users who have starred it.
    pub starred_by: BTreeSet<String>,
    /// The job that this one retries.
    pub retry_of: Option<JobId>,
    /// Its trace context.
    pub trace: Option<TraceContext>,
    /// For an exclusive job whose attempt was lost without a report of its agent: a trainer may run until this time, so
    /// no other attempt starts before.
    pub hold_until: Option<Timestamp>,
    /// When it was last stopped for another job, the oldest first; at most [`MAX_PREEMPTIONS_PER_DAY`].
    pub preempted_at: Vec<Timestamp>,
    /// The job's state.
    pub state: JobState,
}

/// The immutable requirements of a submit.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The name of the configuration.
    pub config_name: String,
    /// The configuration's revision.
    pub config_revision: u32,
    /// Where it may run.
    pub target: JobTarget,
    /// Requirements on the worker.
    pub demand: Demand,
    /// Number of trainer processes, if the configuration sets it.
    pub num_processes: Option<u32>,
    /// Maximum number of retries after lost attempts.
    pub max_retries: u32,
    /// Whether a failure of the trainer also counts as a loss.
    pub retry_on_failure: bool,
    /// Time limit of an attempt's trainer.
    pub max_runtime: Option<Millis>,
    /// Whether two trainers of the job must never run at the same time: an agent that loses contact stops its trainer
    /// in time, and no attempt starts before that time has passed.
    pub exclusive: bool,
    /// Which checkpoints are uploaded.
    pub checkpoints: CheckpointUploads,
    /// Names of the secrets that the job gets; none (for a job of an earlier version) for all that its owner can use.
    pub secrets: Option<Vec<String>>,
    /// Whether the job gets shared secrets only: another user retried it without naming secrets.
    pub shared_secrets_only: bool,
    /// Files that the configuration refers to, besides its data loader. Older agents do not receive them.
    pub files: Vec<String>,
    /// Placeholders for directories of the host that the configuration uses: `data_root`.
    pub paths: Vec<String>,
    /// Values of the configuration that this job overrides.
    pub overrides: JobOverrides,
    /// Where a retried job starts.
    pub start: StartPoint,
    /// The team that it counts for.
    pub team: String,
    /// Its class.
    pub class: JobClass,
}

impl JobSpec {
    /// Creates a spec of a configuration's revision, without requirements and with the defaults of a submit.
    pub fn new(config_name: &str, config_revision: u32) -> Self {
        Self {
            config_name: config_name.to_owned(),
            config_revision,
            target: JobTarget::Auto,
            demand: Demand::default(),
            num_processes: None,
            max_retries: 3,
            retry_on_failure: false,
            max_runtime: None,
            exclusive: false,
            checkpoints: CheckpointUploads::Last,
            secrets: None,
            shared_secrets_only: false,
            files: Vec::new(),
            paths: Vec::new(),
            overrides: JobOverrides::new(),
            start: StartPoint::NewestCheckpoint,
            team: DEFAULT_TEAM.to_owned(),
            class: JobClass::Normal,
        }
    }

    /// A spec with every field set, for tests.
    #[cfg(any(test, feature = "native"))]
    pub fn example() -> Self {
        Self {
            config_name: "digits".to_owned(),
            config_revision: 2,
            target: JobTarget::Worker,
            demand: Demand {
                labels: Labels([("gpu_type".to_owned(), "a100*".to_owned())].into()),
                gpu_count: Some(2),
                min_vram_gb: Some(39.5),
                accelerator: Some("cuda".to_owned()),
                sandbox: SandboxLevel::Files,
            },
            num_processes: Some(2),
            max_retries: 3,
            retry_on_failure: true,
            max_runtime: Some(Millis::from_secs(60)),
            exclusive: true,
            checkpoints: CheckpointUploads::All,
            secrets: Some(vec!["HF_TOKEN".to_owned()]),
            shared_secrets_only: true,
            files: vec!["lycoris_config.json".to_owned()],
            paths: vec!["data_root".to_owned()],
            overrides: [("seed".to_owned(), OverriddenValue { from: Some("7".to_owned()), to: None })].into(),
            start: StartPoint::Checkpoint(CheckpointRef {
                job: JobId::new(Timestamp(1_705_314_600_000), [99; 10]),
                attempt: AttemptNumber(2),
                name: "checkpoint-500".to_owned(),
            }),
            team: "vision".to_owned(),
            class: JobClass::Idle,
        }
    }
}

/// Where a job may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobTarget {
    /// Prefers remote workers, then the orchestrator's own GPUs.
    Auto,
    /// Remote workers only.
    Worker,
    /// The orchestrator's own GPUs only.
    Local,
}

impl JobTarget {
    /// Returns its name in the database, the API and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Worker => "worker",
            Self::Local => "local",
        }
    }
}

/// Which of the trainer's checkpoints are uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckpointUploads {
    /// None: an attempt on another worker starts from scratch.
    None,
    /// The newest.
    #[default]
    Last,
    /// All checkpoints.
    All,
}

impl CheckpointUploads {
    /// Returns its name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }
}

/// Requirements on a worker.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demand {
    /// Labels that must match; values are globs.
    pub labels: Labels,
    /// Number of GPUs; none requires one slot on any worker.
    pub gpu_count: Option<u32>,
    /// Minimum memory of each GPU in GB.
    pub min_vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: Option<String>,
    /// The minimum sandbox level of the trainer.
    pub sandbox: SandboxLevel,
}

/// A worker's report on an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptReport {
    /// The offer is accepted.
    Starting,
    /// The trainer runs.
    Running,
    /// The trainer exited with code 0.
    Completed,
    /// The trainer failed.
    Failed {
        /// The exit code.
        exit_code: Option<i32>,
        /// The error text.
        error: String,
    },
    /// The attempt was stopped. The job is cancelled only if a user cancelled it.
    Cancelled,
    /// The attempt was stopped for reasons other than the job.
    Requeue {
        /// The reason.
        error: String,
    },
    /// The attempt was stopped because the deadline of its worker's drain passed. It does not count as a loss.
    Evicted,
    /// The attempt was stopped for another job. It does not count as a loss.
    Preempted {
        /// The other job.
        by: JobId,
        /// The work since its last checkpoint.
        lost: Millis,
        /// The step of that checkpoint, if there is one.
        step: Option<u64>,
    },
    /// The host cannot run jobs. The attempt does not count as a loss.
    HostUnhealthy {
        /// The error text of the attempt.
        error: String,
    },
}

/// Why a transition is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobTransitionError {
    /// The job has ended.
    AlreadyEnded,
    /// The report is about an attempt that is not the newest.
    StaleAttempt {
        /// The newest attempt.
        current: AttemptNumber,
    },
    /// The attempt belongs to another worker, or was never offered.
    WrongWorker,
    /// Only a queued job can be offered.
    NotQueued,
    /// Only an ended job can be retried.
    NotEnded,
}

impl Demand {
    /// Returns the required number of GPUs; none requires a slot.
    pub fn required_gpus(&self) -> Option<u32> {
        self.gpu_count.or(self.min_vram_gb.map(|_| 1))
    }
}
