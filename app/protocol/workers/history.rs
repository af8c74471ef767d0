//! History of a worker: `/api/admin/workers/{id}/attempts` and `…/events`, and its status over time.

use serde::{Deserialize, Serialize};

use crate::domain::causes::LossCode;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::time::Timestamp;
use crate::protocol::audit::AuditLogEvent;
use crate::protocol::status::WorkerStatus;

/// Query string of both: limit and cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageQuery {
    /// Maximum number of results; if omitted, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Returns the page after the one with this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/workers/{id}/attempts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerAttempts {
    /// The attempts, newest first.
    pub attempts: Vec<WorkerAttempt>,
    /// Statistics of recent attempts, the same on each page.
    pub record: WorkerAttemptStats,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// An attempt that was offered to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerAttempt {
    /// The job.
    pub job_id: JobId,
    /// Its configuration's name.
    pub config_name: String,
    /// The attempt's number, from 1.
    pub attempt: AttemptNumber,
    /// Number of GPUs allocated to it.
    pub gpus: u32,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker accepted it.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The outcome: `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// The error.
    pub error: Option<String>,
    /// Why it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_code: Option<LossCode>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
}

/// Statistics of a worker's recent attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerAttemptStats {
    /// Start of the period: midnight 30 days ago, or the oldest day for which ended jobs are retained.
    pub since: Timestamp,
    /// Number of attempts that were offered to it in the period.
    pub attempts: u64,
    /// Number of completed attempts.
    pub completed: u64,
    /// Number of failed attempts.
    pub failed: u64,
    /// Number of lost attempts.
    pub lost: u64,
    /// Number of cancelled attempts.
    pub cancelled: u64,
    /// Number of offers that were not accepted.
    pub expired: u64,
    /// The percentage of completed attempts, 0 to 100, among those that completed, failed or were lost; none if there
    /// are none.
    pub success_percent: Option<f64>,
    /// Number of consecutive failures in the last 24 hours, each within a minute of its start, since the last success:
    /// 3 or more raise the alert `fast_failures`.
    pub fast_failures: u64,
}

/// `GET /api/admin/workers/{id}/events`: events of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerEvents {
    /// The events, newest first.
    pub events: Vec<AuditLogEvent>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// The status of a worker from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusSpanView {
    /// Start of the status.
    pub since: Timestamp,
    /// The status; null while it had never connected.
    pub status: Option<WorkerStatus>,
}
