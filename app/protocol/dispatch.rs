//! Events on a worker's stream, `GET /api/workers/stream`. Each is one `data:` line of JSON with a top-level `type`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::worker::StopReason;
use crate::domain::ids::{Attempt, JobId};
use crate::domain::sandbox::SandboxLevel;

/// One event. It is a hint: the heartbeat's answer says the same, so a lost one costs only time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkerEvent {
    /// Run this.
    JobSubmit(Box<JobSubmit>),
    /// Stop this.
    JobCancel {
        /// The job.
        job_id: JobId,
        /// Which attempt of it.
        attempt: Attempt,
        /// Why.
        reason: StopReason,
    },
    /// End: for older agents of ephemeral workers, once there is nothing more to do. They do not know `drain`.
    Shutdown {
        /// Why, in words.
        reason: String,
    },
    /// Whether to take nothing new: a drain began or was undone.
    Drain {
        /// Whether the drain holds.
        drain: bool,
    },
    /// Proof that the stream lives, at least every 15 s.
    Ping,
    /// Anything newer than this build.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// An offered attempt. Its first status report is the acceptance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSubmit {
    /// The job.
    pub job_id: JobId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// The configuration's name.
    pub config_name: String,
    /// The whole configuration, for older agents; empty for ours, which fetch the bundle.
    pub config: Map<String, Value>,
    /// The data-loader file's content, for older agents; null if there is none. Some of them fail if the key is missing.
    #[serde(default)]
    pub dataloader: Option<Value>,
    /// Where artifacts go: a path that starts with `/`.
    pub upload_endpoint: String,
    /// The job token, `jt_…`: valid for this attempt's reports and files only.
    pub upload_token: String,
    /// Access to the model hub, if the server holds a secret for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hf_token: Option<String>,
    /// Says to older agents how to read the trainer's output (`kubeflow`: without blocking).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The configuration's files, by reference.
    pub bundle: BundleRef,
    /// UUIDs of the granted GPUs; empty on a host without.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// How many processes to start; `TRAINING_NUM_PROCESSES`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_processes: Option<u32>,
    /// Whether its trainer must have ended before the lease does: the heartbeat timeout after the last contact, counted
    /// from when the agent asked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclusive: bool,
    /// Which checkpoints to send.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// How long its trainer may run, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u64>,
    /// Who submitted it. Their jobs share a home for caches on a host, and a user where its agent runs as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    /// How closely its trainer is to be confined at least; the worker's owner may want more.
    #[serde(default, skip_serializing_if = "is_none_level")]
    pub sandbox: SandboxLevel,
    /// Where the job stands in a trace, as the W3C's header of that name; `TRACEPARENT` for the trainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Which of the trainer's checkpoints the orchestrator is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckpointPolicy {
    /// None: a retry on another worker begins at the beginning.
    None,
    /// The newest, while the trainer runs, and the last at the end.
    #[default]
    Last,
    /// Every one.
    All,
}

impl CheckpointPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Last, Self::All];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }

    /// The one of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }
}

/// Where the configuration's files are: `GET` gives a [`super::configs::Bundle`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleRef {
    /// A path that starts with `/`; asked for with the job token in `X-Upload-Token`.
    pub url: String,
    /// SHA-256 of the body, in hex.
    pub sha256: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_none_level(level: &SandboxLevel) -> bool {
    *level == SandboxLevel::None
}
