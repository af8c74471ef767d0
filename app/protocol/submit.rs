//! What makes a job: a submit, a retry, and their answers.

use serde::{Deserialize, Serialize};

use super::dispatch::CheckpointPolicy;
use super::explain::ExplanationView;
use super::status::{JobStatus, Target};
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::queue::DEFAULT_PRIORITY;
use crate::domain::sandbox::SandboxLevel;
use crate::protocol::overrides::Values;

/// `POST /api/queue/submit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitJob {
    /// The configuration to run.
    pub config_name: String,
    /// Where it may run.
    #[serde(default = "auto")]
    pub target: Target,
    /// Labels that the worker must have; values are globs.
    #[serde(default)]
    pub worker_labels: Labels,
    /// How many GPUs; left out, the configuration's `num_processes` if above 1, else one slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Least memory of each GPU in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// How often a lost attempt may be started again.
    #[serde(default = "three")]
    pub max_retries: u32,
    /// Whether the trainer's own failure is retried too.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// How many seconds an attempt may train before it is stopped and the job fails; left out, there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u32>,
    /// The secrets that the job is given, by name; left out, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// Whether no two trainers of the job may ever run at once: an agent that loses contact stops its own before its
    /// lease ends, and no other attempt begins before. Older agents cannot do that, and are not offered it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// How closely the trainer is confined at least. A worker's own level, if it is higher, counts.
    #[serde(default, skip_serializing_if = "SandboxLevel::is_none")]
    pub sandbox: SandboxLevel,
    /// Which checkpoints are uploaded, so that an attempt on another worker can resume.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// How urgent it is, 0 to 50.
    #[serde(default = "ten")]
    pub priority: u8,
    /// The revision to run; left out, the newest. Required if somebody else has changed the configuration since your last
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<u32>,
    /// Values of `config.json` to override for this job, by key; `null` removes a key.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub overrides: Values,
    /// Only say what would become of it: nothing is submitted, and the answer is an explanation.
    #[serde(default)]
    pub dry_run: bool,
}

fn ten() -> u8 {
    DEFAULT_PRIORITY
}

fn auto() -> Target {
    Target::Auto
}

fn three() -> u32 {
    3
}

/// `POST /api/queue/{id}/retry`; it may be left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetryJob {
    /// Where the new job starts: `scratch`, `newest` (the job's newest checkpoint), or a checkpoint's name. Left out,
    /// `scratch` if the job completed, else `newest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Another revision of the configuration; left out, the one that the job ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<u32>,
    /// Values of `config.json` to override, by key; `null` removes a key. Left out, the job's own overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Values>,
    /// The secrets that the new job gets, by name; yours take precedence over shared ones. Left out, the job's own secrets,
    /// or only the shared ones among them if it is somebody else's job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
}

impl SubmitJob {
    /// A submit with every default.
    pub fn of(config_name: &str) -> Self {
        Self {
            config_name: config_name.to_owned(),
            target: auto(),
            worker_labels: Labels::default(),
            gpu_count: None,
            min_vram_gb: None,
            accelerator_type: None,
            max_retries: three(),
            retry_on_failure: false,
            max_runtime_seconds: None,
            secrets: None,
            exclusive: false,
            sandbox: SandboxLevel::None,
            checkpoints: CheckpointPolicy::Last,
            priority: ten(),
            config_revision: None,
            overrides: Values::new(),
            dry_run: false,
        }
    }
}

/// The answer to [`SubmitJob`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Submitted {
    /// Always true; a refusal is a problem document.
    pub success: bool,
    /// The new job.
    pub job_id: JobId,
    /// `queued`, or `offered` if a worker was free.
    pub status: JobStatus,
    /// Its place among the waiting, from 1; none once it is offered.
    pub queue_position: Option<u64>,
    /// The worker it was offered to.
    pub allocated_worker_id: Option<WorkerId>,
    /// Why no worker there is can take it, if none can.
    pub warning: Option<String>,
}

/// The answer to a submit with `dry_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Previewed {
    /// Always true; a refusal is a problem document.
    pub success: bool,
    /// Always true.
    pub dry_run: bool,
    /// The worker that would get it at once.
    pub allocated_worker_id: Option<WorkerId>,
    /// Its place among the waiting, from 1, if it had to wait.
    pub queue_position: Option<u64>,
    /// What each worker says to it.
    pub explanation: ExplanationView,
}

/// `POST /api/queue/{id}/priority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPriority {
    /// How urgent the job is, 0 to 50.
    pub priority: u8,
}
