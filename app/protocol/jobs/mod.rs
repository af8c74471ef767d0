//! `/api/queue`: jobs as users and scripts see them.

pub mod explain;
pub mod overrides;
pub mod submit;

use serde::{Deserialize, Serialize};

use super::artifacts::ResumePointView;
use super::status::{JobPhase, JobStatus, Target};
use crate::domain::ids::{AttemptNumber, JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::SandboxLevel;
use crate::domain::time::Timestamp;
use crate::protocol::agents::ProgressPoint;
use crate::protocol::agents::dispatch::CheckpointPolicy;
use crate::protocol::gpus::history::{GpuHistory, JobMetrics};
use crate::protocol::jobs::overrides::OverrideDiff;

/// Query string of `GET /api/queue`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsQuery {
    /// Only jobs in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatus>,
    /// Only jobs in this phase: `active` (not ended), `waiting`, `running` or `ended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<JobPhase>,
    /// Only jobs that this user submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only jobs that require this label, `key=value`, or any value of a `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only jobs whose configuration's name contains this text, ignoring case; if it begins with `j_`, jobs whose ID
    /// has this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only jobs of the configuration with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Only jobs with an attempt that was offered to this worker (ID), whatever its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// Only jobs submitted at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only jobs submitted before this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Only jobs that ended at or after this time (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_since: Option<String>,
    /// Maximum number of results; if omitted, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Query parameters of a time series.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptQuery {
    /// Attempt number [default: the latest].
    pub attempt: Option<u32>,
}

/// Query parameters of a job's live data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLiveQuery {
    /// Attempt number [default: the latest].
    pub attempt: Option<u32>,
    /// Offset of the log chunk in bytes [default: the end of the log].
    pub offset: Option<u64>,
}

/// `GET /api/queue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsPage {
    /// Newest first; with `phase=waiting`, in queue order.
    pub jobs: Vec<JobView>,
    /// Total number of matching jobs.
    pub total: u64,
    /// Number of jobs in each status, among those that match the other filters.
    pub counts: JobCounts,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether new jobs are rejected because the server's disk is almost full.
    #[serde(default)]
    pub disk_full: bool,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Jobs by status: `GET /api/queue/stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCounts {
    /// Those in the phase `waiting`.
    pub waiting: u64,
    /// Those in the phase `running`.
    pub running: u64,
    /// `completed`.
    pub completed: u64,
    /// `failed`.
    pub failed: u64,
    /// `cancelled`.
    pub cancelled: u64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub struct JobView {
    /// The job's ID.
    pub job_id: JobId,
    /// Its status.
    pub status: JobStatus,
    /// Since when it has this status.
    pub status_since: Timestamp,
    /// The configuration it runs.
    pub config_name: String,
    /// The configuration's revision, pinned at submit.
    pub config_revision: u32,
    /// Where the job may run.
    pub target: Target,
    /// The worker labels that it requires.
    pub worker_labels: Labels,
    /// Number of GPUs that it requires.
    pub gpu_count: Option<u32>,
    /// Minimum memory of each GPU in GB.
    pub min_vram_gb: Option<f64>,
    /// The kind of accelerator that it requires.
    pub accelerator_type: Option<String>,
    /// Whether the job is also retried when the trainer fails.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// Time limit of an attempt's trainer, in seconds.
    pub max_runtime_seconds: Option<u64>,
    /// Names of the secrets that the job gets; null for a job of an earlier version, which gets all that its owner can
    /// use.
    #[serde(default)]
    pub secrets: Option<Vec<String>>,
    /// Whether the job gets shared secrets only: another user retried it without naming secrets.
    #[serde(default)]
    pub shared_secrets_only: bool,
    /// Whether two trainers of the job must never run at the same time.
    #[serde(default)]
    pub exclusive: bool,
    /// The minimum sandbox level of its trainer.
    #[serde(default)]
    pub sandbox: SandboxLevel,
    /// Which checkpoints are uploaded.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// The priority, 0 to 50.
    pub priority: u8,
    /// The job that this one retries.
    pub retry_of: Option<JobId>,
    /// Where a retry starts: `scratch`, `newest`, or a checkpoint's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Values of the configuration that this job overrides: only if a single job is requested.
    #[serde(default, skip_serializing_if = "OverrideDiff::is_empty")]
    pub overrides: OverrideDiff,
    /// The checkpoints that an ended job can be resumed from, newest first: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumable: Vec<ResumePointView>,
    /// The newest attempt; 0 before the first.
    pub attempt: AttemptNumber,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// The worker that has the job, or had it last.
    pub worker_id: Option<WorkerId>,
    /// That worker's name.
    pub worker_name: Option<String>,
    /// Whether that worker's agent is an older one, which sends no progress, samples or log: only if a single job is
    /// requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older_agent: bool,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// Who submitted it.
    pub submitted_by: String,
    /// When the worker accepted the newest attempt.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its position in the queue, from 1.
    pub queue_position: Option<u64>,
    /// Whether it is pending and no worker meets its requirements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fits_none: bool,
    /// Progress of the newest attempt.
    pub progress: Option<ProgressView>,
    /// Why it failed or was requeued: the first line is the summary, further lines are details.
    pub error: Option<String>,
    /// The line of the newest attempt's log with the error, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// All attempts, oldest first: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptView>>,
}

/// Progress of an attempt: its newest metric point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressView {
    /// The step, from 0.
    pub step: u64,
    /// Total number of steps.
    pub total_steps: Option<u64>,
    /// 0 to 100, if the number of steps is known.
    pub percent: Option<f64>,
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The loss.
    pub loss: Option<f64>,
    /// The step since which the loss is not finite, if it is not: only if a single job is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_nan_since: Option<u64>,
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// Seconds until the end, estimated by the trainer.
    pub eta_seconds: Option<f64>,
    /// The trainer's current stage.
    pub stage: Option<String>,
}

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: AttemptNumber,
    /// The worker it was offered to.
    pub worker_id: WorkerId,
    /// That worker's name, if it still exists.
    pub worker_name: Option<String>,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker accepted it.
    pub started_at: Option<Timestamp>,
    /// When its trainer was first reported as running, if the audit log still has the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    /// When a user cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelling_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The outcome: `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// The error: the first line is the summary, further lines are details.
    pub error: Option<String>,
    /// The line of its log with the error, from 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
    /// The step of the checkpoint that it resumed from; none if it started from scratch.
    #[serde(default)]
    pub resumed_from_step: Option<u64>,
    /// Size of its log in bytes.
    pub log_bytes: u64,
}

/// `GET /api/queue/{id}/logs?attempt=&offset=&limit=`: a part of an attempt's log. `?raw=1` returns the bytes
/// themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogChunk {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// Byte offset of `text`.
    pub offset: u64,
    /// Byte offset to continue from.
    pub next_offset: u64,
    /// Size of the log in bytes.
    pub size: u64,
    /// The text; invalid UTF-8 is replaced.
    pub text: String,
}

/// `GET /api/queue/{id}/live?attempt=&offset=`: everything that changes while a job trains, in one response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobLive {
    /// The job's status.
    pub status: JobStatus,
    /// Its newest attempt; 0 before the first.
    pub attempt: AttemptNumber,
    /// Progress of that attempt.
    pub progress: Option<ProgressView>,
    /// Metrics of the requested attempt.
    pub metrics: JobMetrics,
    /// GPU history of the newest attempt.
    pub gpus: GpuHistory,
    /// The log of the requested attempt from `offset`, or its end; null before the first attempt.
    pub log: Option<LogChunk>,
}

/// `GET /api/queue/{id}/progress?attempt=`: an attempt's metric points, thinned for a chart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressSeries {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The points, in the order of steps.
    pub points: Vec<ProgressPoint>,
}
