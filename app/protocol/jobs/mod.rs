//! `/api/queue`: jobs as users and scripts see them.

pub mod compare;
pub mod explain;
pub mod family;
mod fields;
pub mod log_search;
pub mod overrides;
mod query;
pub mod saved_views;
pub mod submit;
pub mod votes;

use serde::{Deserialize, Serialize};

pub use self::fields::{JobView, SubmitJob};
pub use self::query::{JobColumns, JobCompletions, JobCompletionsQuery, JobGroupView, JobGroupsPage, JobsQuery};
use super::status::{JobPhase, JobStatus};
use crate::domain::causes::LossCode;
use crate::domain::ids::{AttemptNumber, WorkerId};
use crate::domain::time::Timestamp;
use crate::protocol::agents::ProgressPoint;
use crate::protocol::gpus::history::{GpuHistory, JobMetrics};
use crate::protocol::logs::LogLink;

/// Query parameters of a time series.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesQuery {
    /// Attempt number [default: the latest].
    pub attempt: Option<u32>,
    /// The first step [default: that of the attempt]. Fewer steps are thinned less.
    pub from: Option<u64>,
    /// The last step [default: that of the attempt].
    pub to: Option<u64>,
}

impl SeriesQuery {
    /// Returns the steps, as the database stores them.
    pub fn steps(&self) -> std::ops::RangeInclusive<i64> {
        let stored = |step: u64| i64::try_from(step).unwrap_or(i64::MAX);
        stored(self.from.unwrap_or(0))..=stored(self.to.unwrap_or(u64::MAX))
    }
}

/// Query parameters of exported metrics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricsCsvQuery {
    /// Attempt number [default: the latest].
    pub attempt: Option<u32>,
    /// The only metric [default: all].
    pub metric: Option<String>,
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

impl JobCounts {
    /// Returns the counts; `sum` counts the jobs with a status for which a function is true.
    pub fn from_sums(sum: impl Fn(&dyn Fn(JobStatus) -> bool) -> u64) -> Self {
        Self {
            waiting: sum(&|status| status.is_in_phase(JobPhase::Waiting)),
            running: sum(&|status| status.is_in_phase(JobPhase::Running)),
            completed: sum(&|status| status == JobStatus::Completed),
            failed: sum(&|status| status == JobStatus::Failed),
            cancelled: sum(&|status| status == JobStatus::Cancelled),
        }
    }
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

impl ProgressView {
    /// The progress of [`JobView::example`], for tests.
    #[cfg(any(test, feature = "native"))]
    pub(super) fn example() -> Self {
        Self {
            step: 250,
            total_steps: Some(1_000),
            percent: Some(25.0),
            at: Timestamp(1_705_314_900_000),
            epoch: Some(1.5),
            loss: Some(0.125),
            loss_nan_since: None,
            learning_rate: Some(0.25),
            eta_seconds: Some(900.0),
            stage: Some("training".to_owned()),
        }
    }
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
    /// The number of GPUs that are allocated to it.
    #[serde(default)]
    pub gpus: u32,
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
    /// Why it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_code: Option<LossCode>,
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
    /// Links to experiment trackers and repositories at the beginning and the end of its log, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LogLink>,
    /// The ranks that prefix lines at the beginning and the end of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
}

impl AttemptView {
    /// The attempt of [`JobView::example`], for tests.
    #[cfg(any(test, feature = "native"))]
    pub(super) fn example(worker_id: WorkerId) -> Self {
        Self {
            attempt: AttemptNumber(2),
            worker_id,
            worker_name: Some("gpu-1".to_owned()),
            gpus: 2,
            offered_at: Timestamp(1_705_314_660_000),
            started_at: Some(Timestamp(1_705_314_720_000)),
            running_at: Some(Timestamp(1_705_314_780_000)),
            cancelling_at: None,
            ended_at: Some(Timestamp(1_705_318_200_000)),
            outcome: Some("failed".to_owned()),
            error: Some("ValueError: no images".to_owned()),
            error_line: Some(17),
            loss_code: Some(LossCode::TrainerFailed),
            exit_code: Some(1),
            resumed_from_step: Some(125),
            log_bytes: 4_096,
            links: vec![LogLink::example()],
            ranks: vec![0, 1],
        }
    }
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

/// `GET /api/queue/{id}/progress?attempt=&from=&to=`: an attempt's metric points, thinned for a chart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgressSeries {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The points, in the order of steps.
    pub points: Vec<ProgressPoint>,
}

#[cfg(test)]
mod tests;
