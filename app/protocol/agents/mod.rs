//! `/api/workers/*`: the protocol between agents and the orchestrator.

pub mod dispatch;
pub mod rejected;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::dispatch::JobOffer;
use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::Sandbox;
use crate::domain::time::Timestamp;
pub use crate::protocol::gpu::{Gpu, GpuInfo, GpuReading, GpuTelemetry, MemoryKind, Unavailable, UnavailableReason};

/// The protocol version of this build.
pub const PROTOCOL_VERSION: u32 = 1;

/// `POST /api/workers/register`. Older agents send only the first four fields; scripts may send the flat GPU fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterRequest {
    /// The name that the agent suggests; a name set by an admin takes precedence.
    #[serde(default)]
    pub name: Option<String>,
    /// The hardware, in the format of older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_info: Option<GpuInfo>,
    /// Whether the agent stays online between jobs.
    #[serde(default)]
    pub persistent: Option<bool>,
    /// The job that an older agent is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_job_id: Option<JobId>,
    /// Documented flat field for [`GpuInfo::count`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Documented flat field for [`GpuInfo::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_name: Option<String>,
    /// Documented flat field for [`GpuInfo::vram_gb`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_vram_gb: Option<f64>,
    /// Documented flat field for [`GpuInfo::accelerator`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// All GPUs; not sent by older agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Labels that the agent reports; labels set by an admin take precedence.
    #[serde(default)]
    pub labels: Labels,
    /// The host's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The agent's [`PROTOCOL_VERSION`]; not sent by older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// Random for each start of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Random for each work directory; distinguishes two hosts with one token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<String>,
    /// Whether it verifies the orchestrator's certificate; not sent by older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_verify: Option<bool>,
    /// Maximum number of concurrent jobs, 1 to 64; if omitted, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Why the host cannot run new jobs now (for example, its disk is full); omitted if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_reason: Option<String>,
    /// The host's sandbox; not sent by older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The names of the directories that it provides to jobs (`data_root`); omitted by agents that do not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// The attempts that run on this host, including adopted ones.
    #[serde(default)]
    pub attempts: Vec<RunningAttempt>,
}

/// An attempt that an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningAttempt {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
}

/// What a host can run: the output of `simpletuner-worker probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeReport {
    /// Number of GPUs.
    pub gpus: u32,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
    /// Whether the trainer can be started.
    pub trainer: bool,
}

/// The answer to [`RegisterRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterResponse {
    /// The worker's id.
    pub worker_id: WorkerId,
    /// The worker's name.
    pub name: String,
    /// Interval of heartbeats, in seconds.
    pub heartbeat_interval_seconds: u64,
    /// Seconds without a heartbeat after which the worker is marked offline.
    pub heartbeat_timeout_seconds: u64,
    /// The server's [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// The server's clock.
    pub server_time: Timestamp,
    /// The session, which the agent sends as `X-Worker-Token` until it registers again; omitted for older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// For older agents: continue this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_job: Option<ResumeJob>,
    /// For older agents: the job they run is no longer assigned to them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub abandon_job: bool,
    /// The desired state of this host.
    pub desired: DesiredState,
}

/// See [`RegisterResponse::resume_job`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeJob {
    /// The job to continue.
    pub job_id: JobId,
}

/// `POST /api/workers/heartbeat`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatRequest {
    /// The worker's ID, sent by older agents; it must match the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// `idle` or `busy`: whether an older agent runs `current_job_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The job that an older agent is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_job_id: Option<JobId>,
    /// The attempts that the agent runs.
    #[serde(default)]
    pub attempts: Vec<RunningAttempt>,
    /// GPU readings since the last heartbeat, oldest first; at most 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telemetry: Vec<GpuTelemetry>,
    /// The current value of [`RegisterRequest::unhealthy_reason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_reason: Option<String>,
}

/// The answer to `GET /api/workers/queue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HasJobsResponse {
    /// Whether there is an offer for the worker.
    pub has_jobs: bool,
}

/// The answer to [`HeartbeatRequest`] and to `GET /api/workers/next`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatResponse {
    /// The desired state of this host.
    pub desired: DesiredState,
}

/// The complete desired state of a host. A running attempt that is not in `run` continues unless it is in `stop`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesiredState {
    /// Attempts that should be running here.
    #[serde(default)]
    pub run: Vec<RunningAttempt>,
    /// Attempts that must not run here, and why.
    #[serde(default)]
    pub stop: Vec<StopAttempt>,
    /// Offers that the agent has not accepted yet.
    #[serde(default)]
    pub offers: Vec<JobOffer>,
    /// Whether to finish running attempts and then accept no new ones (persistent) or exit (ephemeral).
    #[serde(default)]
    pub drain: bool,
    /// Whether the worker's only job has ended: exit when nothing runs, even if the agent was started as persistent.
    #[serde(default)]
    pub retired: bool,
}

/// An attempt to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAttempt {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The reason.
    pub reason: StopReason,
}

/// Why an attempt must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A user cancelled the job: stop, and report `cancelled`.
    Cancelled,
    /// The attempt has ended or was reassigned: stop, and report nothing.
    Superseded,
    /// The deadline of the worker's drain has passed: stop, and report `requeue`.
    Drained,
    /// The attempt has reached its time limit: stop, and report `cancelled`.
    OverTime,
}

/// `POST /api/workers/job/{id}/status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReport {
    /// `starting`, `training` or `running`, `completed`, `failed`, `cancelled`, or `requeue` (stopped, but not because
    /// of the job).
    pub status: String,
    /// The attempt; older agents send none and mean the one that they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// The error, as reported by the trainer or the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The line of the attempt's log with the error, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// The trainer's exit code, or 128 + signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// With `running`: the step of the checkpoint that it resumes from; omitted if it starts from scratch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from_step: Option<u64>,
    /// The training's progress, as in `POST /api/workers/job/{id}/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressPoint>,
    /// With `requeue`: the host is the cause and cannot run new jobs, as in [`RegisterRequest::unhealthy_reason`]. The attempt
    /// does not count as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_reason: Option<String>,
}

/// The answer to `GET /api/workers/job/{id}/checkpoint`: the newest complete checkpoint of earlier attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeCheckpoint {
    /// The attempt that uploaded it; omitted if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// The name of its directory, `checkpoint-500`; empty if there is none.
    #[serde(default)]
    pub name: String,
    /// Its files, at `/api/workers/job/{id}/checkpoint/{path}?attempt=`.
    #[serde(default)]
    pub files: Vec<CheckpointFile>,
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointFile {
    /// Path below the job's output directory, including the checkpoint's directory.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// The state of an upload in chunks: the answer to a chunk that is not the last one, and to `GET
/// /api/workers/job/{id}/artifacts/{path}?attempt=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadProgress {
    /// Number of bytes stored on the server's disk: the next offset to send.
    pub received: u64,
}

/// The answer to a chunk of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum UploadResponse {
    /// The last chunk: the file is stored.
    Stored(ArtifactAck),
    /// More chunks are expected.
    Received(UploadProgress),
}

/// The answer to a report about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportResponse {
    /// Always true; an error is returned as a problem document.
    pub success: bool,
}

/// `POST /api/workers/job/{id}/progress`: metric points in order, the newest last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressReport {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The points, at most 500.
    pub points: Vec<ProgressPoint>,
}

/// The metrics of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressPoint {
    /// The step, from 0.
    pub step: u64,
    /// Total number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// The epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<f64>,
    /// The loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Whether the loss is not finite: NaN or infinite.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loss_is_nan: bool,
    /// The learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Seconds until the end, estimated by the trainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<f64>,
    /// Other metrics by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// The trainer's current stage ("Loading data").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

/// The answer to `PUT /api/workers/job/{id}/logs?attempt=&offset=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogAck {
    /// Number of bytes of the log on the server's disk: the next offset to send.
    pub durable: u64,
}

/// The answer to `PUT /api/workers/job/{id}/artifacts/{path}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactAck {
    /// Path below the job's output directory.
    pub path: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// `POST /api/workers/disconnect`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisconnectRequest {
    /// The worker's ID, sent by older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// Attempts that continue under their supervisors while the agent is stopped.
    #[serde(default)]
    pub left_running: Vec<RunningAttempt>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_false(value: &bool) -> bool {
    !value
}
