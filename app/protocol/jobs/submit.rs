//! Requests that create jobs (submit and retry), and their responses.

use serde::{Deserialize, Serialize};

use super::explain::ExplanationView;
use crate::domain::ids::{JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::priority::DEFAULT_PRIORITY;
use crate::domain::sandbox::SandboxLevel;
use crate::protocol::agents::dispatch::CheckpointPolicy;
use crate::protocol::jobs::overrides::OverrideValues;
use crate::protocol::status::{JobStatus, Target};

/// `POST /api/queue/submit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitJob {
    /// The configuration to run.
    pub config_name: String,
    /// Where it may run.
    #[serde(default = "auto")]
    pub target: Target,
    /// Labels that the worker must have; values can be globs.
    #[serde(default)]
    pub worker_labels: Labels,
    /// Number of GPUs; if omitted, the configuration's `num_processes` if it is greater than 1, else one slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Minimum memory of each GPU in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_vram_gb: Option<f64>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// How many times a lost attempt is retried.
    #[serde(default = "three")]
    pub max_retries: u32,
    /// Whether the job is also retried when the trainer fails.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// Time limit of an attempt in seconds: the trainer is then stopped and the job fails. If omitted, there is no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runtime_seconds: Option<u32>,
    /// Names of the secrets that the job gets; if omitted, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
    /// Whether two trainers of the job must never run at the same time: an agent that loses contact stops its trainer
    /// before its lease expires, and no other attempt starts before that. Older agents cannot do that and are not
    /// offered the job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// The minimum sandbox level of the trainer. A higher level of the worker takes precedence.
    #[serde(default, skip_serializing_if = "SandboxLevel::is_none")]
    pub sandbox: SandboxLevel,
    /// Which checkpoints are uploaded, so that an attempt on another worker can resume.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// The priority, 0 to 50.
    #[serde(default = "ten")]
    pub priority: u8,
    /// The revision to run; if omitted, the newest. Required if another user has changed the configuration since your
    /// last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<u32>,
    /// Values of `config.json` to override for this job, by key; `null` removes a key.
    #[serde(default, skip_serializing_if = "OverrideValues::is_empty")]
    pub overrides: OverrideValues,
    /// Validates the request and explains its scheduling without submitting.
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

/// `POST /api/queue/{id}/retry`; the body is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetryJob {
    /// Where the new job starts: `scratch`, `newest` (the job's newest checkpoint), or a checkpoint's name. If omitted,
    /// `scratch` if the job completed, else `newest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Another revision of the configuration; if omitted, the one that the job ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<u32>,
    /// Values of `config.json` to override, by key; `null` removes a key. If omitted, the job's own overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<OverrideValues>,
    /// Names of the secrets that the new job gets; yours take precedence over shared ones. If omitted, the job's own
    /// secrets, or only the shared ones among them if it is another user's job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<String>>,
}

impl SubmitJob {
    /// Creates a submit with all defaults.
    pub fn new(config_name: &str) -> Self {
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
            overrides: OverrideValues::new(),
            dry_run: false,
        }
    }
}

/// The answer to [`SubmitJob`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitJobResponse {
    /// Always true; an error is returned as a problem document.
    pub success: bool,
    /// The new job.
    pub job_id: JobId,
    /// `queued`, or `offered` if a worker was free.
    pub status: JobStatus,
    /// Its position in the queue, from 1; none once it is offered.
    pub queue_position: Option<u64>,
    /// The worker it was offered to.
    pub allocated_worker_id: Option<WorkerId>,
    /// A warning if no known worker meets its requirements.
    pub warning: Option<String>,
}

/// The answer to a submit with `dry_run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitPreviewResponse {
    /// Always true; an error is returned as a problem document.
    pub success: bool,
    /// Always true.
    pub dry_run: bool,
    /// The worker that would get it immediately.
    pub allocated_worker_id: Option<WorkerId>,
    /// Its position in the queue, from 1, if it would be pending.
    pub queue_position: Option<u64>,
    /// The scheduling result for each worker.
    pub explanation: ExplanationView,
}

/// `POST /api/queue/{id}/priority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPriority {
    /// The priority, 0 to 50.
    pub priority: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of an `Idempotency-Key` is that of this document: a request that is repeated after an upgrade must still
    /// be the same. A new field is therefore omitted while it has its default.
    #[test]
    fn document_of_a_submit_with_defaults_does_not_change() {
        assert_eq!(
            serde_json::to_value(SubmitJob::new("digits")).expect("a document"),
            serde_json::json!({
                "config_name": "digits", "target": "auto", "worker_labels": {}, "max_retries": 3,
                "retry_on_failure": false, "checkpoints": "last", "priority": 10, "dry_run": false,
            })
        );
    }
}
