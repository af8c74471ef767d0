//! Events on a worker's stream, `GET /api/workers/stream`. Each is one `data:` line of JSON with a top-level `type`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::sandbox::SandboxLevel;
use crate::protocol::agents::StopReason;

/// One event. Events are hints: the heartbeat response contains the same information, so a lost event only causes a
/// delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerEvent {
    /// Run this attempt.
    JobSubmit(Box<JobOffer>),
    /// Stop this attempt.
    JobCancel {
        /// The job.
        job_id: JobId,
        /// The attempt.
        attempt: AttemptNumber,
        /// The reason.
        reason: StopReason,
    },
    /// Exit, for older agents of ephemeral workers that have finished. They do not know `drain`.
    Shutdown {
        /// The reason, as text.
        reason: String,
    },
    /// A drain was started or cancelled.
    Drain {
        /// Whether the worker is draining.
        drain: bool,
    },
    /// Keep-alive, at least every 15 s.
    Ping,
    /// An event that this version does not know.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// An offered attempt. The agent accepts it by its first status report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobOffer {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The configuration's name.
    pub config_name: String,
    /// The complete configuration, for older agents; empty for current agents, which download the bundle.
    pub config: Map<String, Value>,
    /// The content of the data-loader file, for older agents; null if there is none. Some of them fail if the key is
    /// missing.
    #[serde(default)]
    pub dataloader: Option<Value>,
    /// Path for artifact uploads; starts with `/`.
    pub upload_endpoint: String,
    /// The job token, `jt_…`: valid only for reports and files of this attempt.
    pub upload_token: String,
    /// The token for the model hub, if the server has a secret for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hf_token: Option<String>,
    /// Tells older agents how to read the trainer's output (`kubeflow`: without blocking).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Reference to the configuration's files.
    pub bundle: BundleRef,
    /// Whether the job has secrets, which must be fetched.
    #[serde(default = "true_by_default", skip_serializing_if = "is_true")]
    pub has_secrets: bool,
    /// Whether the orchestrator may have a checkpoint of an earlier attempt.
    #[serde(default = "true_by_default", skip_serializing_if = "is_true")]
    pub may_have_checkpoint: bool,
    /// UUIDs of the allocated GPUs; empty on a host without GPUs.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Number of processes to start; `TRAINING_NUM_PROCESSES`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_processes: Option<u32>,
    /// Whether the trainer must have stopped before the lease expires: one heartbeat timeout after the last successful
    /// contact, counted from the start of that request.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclusive: bool,
    /// Which checkpoints to upload.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// Time limit for the trainer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u64>,
    /// Who submitted the job. On a host, jobs of one user share a home directory for caches, and an operating system
    /// user if the agent runs as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    /// The minimum sandbox level; the worker's own level may be higher.
    #[serde(default, skip_serializing_if = "is_none_level")]
    pub sandbox: SandboxLevel,
    /// The W3C trace context (`traceparent`); passed to the trainer as `TRACEPARENT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Which of the trainer's checkpoints are uploaded to the orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckpointPolicy {
    /// None: a retry on another worker starts from scratch.
    None,
    /// The newest one while the trainer runs, and the last one at the end.
    #[default]
    Last,
    /// All checkpoints.
    All,
}

impl CheckpointPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::None, Self::Last, Self::All];

    /// Returns the policy's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }

    /// Parses a policy's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}

/// Where to download the configuration's files: `GET` returns a [`crate::protocol::configs::ConfigBundle`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleRef {
    /// A path that starts with `/`; requires the job token in `X-Upload-Token`.
    pub url: String,
    /// SHA-256 of the body, in hex.
    pub sha256: String,
    /// The body itself, if it has at most [`MAX_INLINE_BUNDLE`] bytes and the agent is not an older one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The maximum size of a bundle that an offer contains, in bytes.
pub const MAX_INLINE_BUNDLE: usize = 16 * 1024;

/// An older orchestrator does not say, so the agent has to ask.
const fn true_by_default() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_none_level(level: &SandboxLevel) -> bool {
    *level == SandboxLevel::None
}
