//! `/api/queue`: jobs as people and scripts see them.

use serde::{Deserialize, Serialize};

use super::artifacts::ResumePoint;
use super::dispatch::CheckpointPolicy;
use super::status::{JobStatus, Phase, Target};
use super::worker::ProgressPoint;
use crate::domain::ids::{Attempt, JobId, WorkerId};
use crate::domain::labels::Labels;
use crate::domain::sandbox::SandboxLevel;
use crate::domain::time::Timestamp;
use crate::protocol::overrides::Diff;

/// `GET /api/queue`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsQuery {
    /// Only jobs in this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobStatus>,
    /// Only jobs that have not ended (`active`: they wait or run), or that have (`ended`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Only jobs that this person submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only jobs that ask for this label, `key=value`, or for any value of a `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only jobs of which an attempt was offered to the worker of this id, whatever became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// Not submitted earlier than this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Submitted earlier than this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Only jobs that have ended, and not earlier than this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_since: Option<String>,
    /// At most so many, 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/queue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsPage {
    /// Newest first; with `phase=waiting` in the order in which it is their turn.
    pub jobs: Vec<JobView>,
    /// How many match the filters in all.
    pub total: u64,
    /// How many jobs there are in each status, of those that the other filters let through.
    pub counts: JobCounts,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether no new jobs are taken, because the server's disk is almost full.
    #[serde(default)]
    pub disk_full: bool,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// Jobs by status: `GET /api/queue/stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCounts {
    /// `queued` and `offered`.
    pub waiting: u64,
    /// `starting`, `running` and `cancelling`.
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
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct JobView {
    /// The job's id.
    pub job_id: JobId,
    /// Where it stands.
    pub status: JobStatus,
    /// Since when it stands there.
    pub status_since: Timestamp,
    /// The configuration it runs.
    pub config_name: String,
    /// The configuration's revision, pinned at the submit.
    pub config_revision: u32,
    /// Where it may run.
    pub target: Target,
    /// The labels it asks for.
    pub worker_labels: Labels,
    /// How many GPUs it asks for.
    pub gpu_count: Option<u32>,
    /// Least memory of each GPU in GB.
    pub min_vram_gb: Option<f64>,
    /// The kind of accelerator it asks for.
    pub accelerator_type: Option<String>,
    /// Whether the trainer's own failure is tried again too.
    #[serde(default)]
    pub retry_on_failure: bool,
    /// How many seconds the trainer of an attempt may run.
    pub max_runtime_seconds: Option<u64>,
    /// The secrets that it is given, by name; null, of a job of an earlier version, for every one that its owner can use.
    #[serde(default)]
    pub secrets: Option<Vec<String>>,
    /// Whether the job gets shared secrets only: another person retried it and named no secrets of their own.
    #[serde(default)]
    pub shared_secrets_only: bool,
    /// Whether no two of its trainers may ever run at once.
    #[serde(default)]
    pub exclusive: bool,
    /// How closely its trainer is confined at least.
    #[serde(default)]
    pub sandbox: SandboxLevel,
    /// Which of its checkpoints are sent here.
    #[serde(default)]
    pub checkpoints: CheckpointPolicy,
    /// How urgent it is, 0 to 50.
    pub priority: u8,
    /// The job that this one tries again.
    pub retry_of: Option<JobId>,
    /// Where a retry starts: `scratch`, `newest`, or a checkpoint's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// Values of the configuration that this job overrides: only where one job is asked for.
    #[serde(default, skip_serializing_if = "Diff::is_empty")]
    pub overrides: Diff,
    /// The checkpoints that a job that has ended can be resumed from, newest first: only where one job is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumable: Vec<ResumePoint>,
    /// The newest attempt; 0 before the first.
    pub attempt: Attempt,
    /// How many attempts there can be.
    pub max_attempts: u32,
    /// The worker that has it, or had it last.
    pub worker_id: Option<WorkerId>,
    /// That worker's name.
    pub worker_name: Option<String>,
    /// Whether that worker's agent is an older one, which sends no progress, samples or log: only where one job is asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub older_agent: bool,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// By whom.
    pub submitted_by: String,
    /// When the newest attempt's worker took it.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its place among the waiting, from 1.
    pub queue_position: Option<u64>,
    /// Whether it waits, and no worker can take it as it was submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fits_none: bool,
    /// How far the newest attempt is.
    pub progress: Option<ProgressView>,
    /// Why it failed, or why it waits again, in words: the first line says it, those below are what belongs to it.
    pub error: Option<String>,
    /// The line of the newest attempt's log that says so, from 1, if its agent knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// Every attempt, oldest first: only where one job is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptView>>,
}

/// How far an attempt is: its newest point.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressView {
    /// The step, from 0.
    pub step: u64,
    /// How many steps there will be.
    pub total_steps: Option<u64>,
    /// 0 to 100, if the number of steps is known.
    pub percent: Option<f64>,
    /// When, by the agent's clock.
    pub at: Timestamp,
    /// The epoch.
    pub epoch: Option<f64>,
    /// The loss.
    pub loss: Option<f64>,
    /// The learning rate.
    pub learning_rate: Option<f64>,
    /// Seconds until the end, by the trainer's estimate.
    pub eta_seconds: Option<f64>,
    /// What the trainer says it is doing.
    pub stage: Option<String>,
}

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AttemptView {
    /// Its number, from 1.
    pub attempt: Attempt,
    /// The worker it was offered to.
    pub worker_id: WorkerId,
    /// That worker's name, if it still exists.
    pub worker_name: Option<String>,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker took it.
    pub started_at: Option<Timestamp>,
    /// When its trainer ran first, as far as the trail remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    /// When a person cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelling_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended: `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// What went wrong: the first line says it, those below are what belongs to it.
    pub error: Option<String>,
    /// The line of its log that says so, from 1, if its agent knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<u64>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
    /// The step of the checkpoint that it went on from; none if it began at the beginning.
    #[serde(default)]
    pub resumed_from_step: Option<u64>,
    /// How many bytes of log there are.
    pub log_bytes: u64,
}

/// `GET /api/queue/{id}/logs?attempt=&offset=&limit=`: a piece of an attempt's log. `?raw=1` gives the bytes themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogChunk {
    /// Which attempt.
    pub attempt: Attempt,
    /// Where `text` starts, in bytes.
    pub offset: u64,
    /// Where to go on, in bytes.
    pub next_offset: u64,
    /// How many bytes there are now.
    pub size: u64,
    /// The text, with bytes that are no UTF-8 replaced.
    pub text: String,
}

/// `GET /api/queue/{id}/progress?attempt=`: an attempt's points, thinned to a number that a chart can show.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressSeries {
    /// Which attempt.
    pub attempt: Attempt,
    /// In order of steps.
    pub points: Vec<ProgressPoint>,
}
