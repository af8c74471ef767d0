//! `/api/workers/*`: what agents and the orchestrator say to each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::dispatch::JobSubmit;
pub use super::gpu::{Gpu, GpuInfo, GpuReading, MemoryKind, Telemetry, Withheld, WithheldReason};
use crate::domain::ids::{Attempt, JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::Sandbox;
use crate::domain::time::Timestamp;

/// The version of this contract that this build speaks.
pub const PROTOCOL: u32 = 1;

/// `POST /api/workers/register`. Older agents send the first four fields only, scripts may send the flat GPU fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Register {
    /// The agent's own idea of its name; the admin's wins.
    #[serde(default)]
    pub name: Option<String>,
    /// What hardware there is, in the older shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_info: Option<GpuInfo>,
    /// Whether the agent stays between jobs.
    #[serde(default)]
    pub persistent: Option<bool>,
    /// The job that an older agent is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_job_id: Option<JobId>,
    /// The documented flat field for [`GpuInfo::count`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// The documented flat field for [`GpuInfo::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_name: Option<String>,
    /// The documented flat field for [`GpuInfo::vram_gb`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_vram_gb: Option<f64>,
    /// The documented flat field for [`GpuInfo::accelerator`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator_type: Option<String>,
    /// Every GPU, from our own agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Labels that the agent reports; the admin's win.
    #[serde(default)]
    pub labels: Labels,
    /// The host's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// [`PROTOCOL`] as the agent speaks it; older agents send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// Random per start of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Random per work directory: two hosts with one token are told apart by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<String>,
    /// Whether it verifies the orchestrator's certificate; older agents say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_verify: Option<bool>,
    /// How many jobs it takes at once, 1 to 64; left out, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Why the host is fit for no new job now, in the agent's words (its disk is full); left out, it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// How the host confines trainers; older agents say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The names of the directories that it gives to jobs (`data_root`); left out by agents that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// The attempts that run on this host, adopted ones included.
    #[serde(default)]
    pub attempts: Vec<RunningAttempt>,
}

/// An attempt that an agent is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningAttempt {
    /// The job.
    pub job_id: JobId,
    /// Which attempt of it.
    pub attempt: Attempt,
}

/// What a machine could run: the output of `simpletuner-worker probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe {
    /// How many GPUs there are.
    pub gpus: u32,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
    /// Whether the trainer can be started.
    pub trainer: bool,
}

/// The answer to [`Register`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Registered {
    /// The worker's id.
    pub worker_id: WorkerId,
    /// The name that counts.
    pub name: String,
    /// How often to send heartbeats, in seconds.
    pub heartbeat_interval_seconds: u64,
    /// After how many silent seconds the worker counts as offline.
    pub heartbeat_timeout_seconds: u64,
    /// [`PROTOCOL`] as the server speaks it.
    pub protocol: u32,
    /// The server's clock.
    pub server_time: Timestamp,
    /// What the agent sends as `X-Worker-Token` from now on, until it registers again; left out for older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// For older agents: keep running this job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_job: Option<ResumeJob>,
    /// For older agents: the job they run is no longer theirs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub abandon_job: bool,
    /// What should be true on this host.
    pub desired: Desired,
}

/// See [`Registered::resume_job`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeJob {
    /// The job to keep.
    pub job_id: JobId,
}

/// `POST /api/workers/heartbeat`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heartbeat {
    /// The worker's id, as older agents send it; it must be the token's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// `idle` or `busy`: whether an older agent runs what `current_job_id` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The job that an older agent is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_job_id: Option<JobId>,
    /// What our agent is running.
    #[serde(default)]
    pub attempts: Vec<RunningAttempt>,
    /// How the GPUs were since the last heartbeat, oldest first; at most 12 moments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telemetry: Vec<Telemetry>,
    /// [`Register::unfit`], as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
}

/// The answer to `GET /api/workers/queue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HasJobs {
    /// Whether an offer waits for the worker.
    pub has_jobs: bool,
}

/// The answer to [`Heartbeat`] and to `GET /api/workers/next`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatAnswer {
    /// What should be true on this host.
    pub desired: Desired,
}

/// What should be true on a host: the whole of it, each time. Whatever runs and is not in `run` stays as it is unless it is in `stop`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Desired {
    /// Attempts that should be running here.
    #[serde(default)]
    pub run: Vec<RunningAttempt>,
    /// Attempts that must not run here (any more), and why.
    #[serde(default)]
    pub stop: Vec<StopAttempt>,
    /// Offers that wait for an answer.
    #[serde(default)]
    pub offers: Vec<JobSubmit>,
    /// Whether to finish what runs and then take nothing new (persistent) or leave (ephemeral).
    #[serde(default)]
    pub drain: bool,
    /// Whether the worker's one job has ended: end once nothing runs, also if the agent was started as persistent.
    #[serde(default)]
    pub spent: bool,
}

/// An attempt to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAttempt {
    /// The job.
    pub job_id: JobId,
    /// Which attempt of it.
    pub attempt: Attempt,
    /// Why.
    pub reason: StopReason,
}

/// Why an attempt has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A person cancelled the job: stop, and report `cancelled`.
    Cancelled,
    /// The attempt is over or was given to someone else: stop, and report nothing.
    Superseded,
    /// The worker's drain has come to its deadline: stop, and report `requeue`.
    Drained,
    /// It has run as long as the submit allows: stop, and report `cancelled`.
    OverTime,
}

/// `POST /api/workers/job/{id}/status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusReport {
    /// `starting`, `training` or `running`, `completed`, `failed`, `cancelled`, or `requeue` (stopped, but not by the job's fault).
    pub status: String,
    /// Which attempt; older agents send none and mean the one they hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// What went wrong, in the trainer's or agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The line of the attempt's log that says so, from 1, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// The trainer's exit code, or 128 + signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// With `running`: the step of the checkpoint that it goes on from; left out, it begins at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from_step: Option<u64>,
    /// How the training stands, as in `POST /api/workers/job/{id}/progress`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressPoint>,
}

/// The answer to `GET /api/workers/job/{id}/checkpoint`: the newest whole checkpoint that earlier attempts have sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EarlierCheckpoint {
    /// The attempt that made it; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// Its directory's name, `checkpoint-500`; empty if there is none.
    #[serde(default)]
    pub name: String,
    /// Its files. Each is at `/api/workers/job/{id}/checkpoint/{path}?attempt=`.
    #[serde(default)]
    pub files: Vec<CheckpointFile>,
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointFile {
    /// Path below the job's output, the checkpoint's own directory included.
    pub path: String,
    /// How many bytes.
    pub size_bytes: u64,
    /// Their SHA-256 in hex.
    pub sha256: String,
}

/// How much of a file that is sent in pieces has arrived: the answer to a piece that is not the last, and to
/// `GET /api/workers/job/{id}/artifacts/{path}?attempt=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadProgress {
    /// How many bytes are on the server's disk: the next offset to send.
    pub received: u64,
}

/// The answer to a piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Uploaded {
    /// It was the last, or all of it: the file is stored.
    Stored(ArtifactAck),
    /// More is to come.
    Received(UploadProgress),
}

/// The answer to a report about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accepted {
    /// Always true; a refusal is a problem document.
    pub success: bool,
}

/// `POST /api/workers/job/{id}/progress`: points in order, the newest last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressReport {
    /// Which attempt.
    pub attempt: Attempt,
    /// At most 500 at a time.
    pub points: Vec<ProgressPoint>,
}

/// How a training stood at one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressPoint {
    /// The step, from 0.
    pub step: u64,
    /// How many steps there will be.
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
    /// The learning rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Seconds until the end, by the trainer's estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<f64>,
    /// Any other number by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// What the trainer says it is doing ("Loading data").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
}

/// The answer to `PUT /api/workers/job/{id}/logs?attempt=&offset=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogAck {
    /// How many bytes of the log are now safe on the server's disk: the next offset to send.
    pub durable: u64,
}

/// The answer to `PUT /api/workers/job/{id}/artifacts/{path}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactAck {
    /// The path below the job's output.
    pub path: String,
    /// How many bytes were stored.
    pub size_bytes: u64,
    /// Their SHA-256 in hex.
    pub sha256: String,
}

/// `POST /api/workers/disconnect`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disconnect {
    /// The worker's id, as older agents send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<WorkerId>,
    /// Attempts that go on under their supervisors while the agent is away.
    #[serde(default)]
    pub left_running: Vec<RunningAttempt>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}
