//! What a worker did, and what happened with it: `/api/admin/workers/{id}/attempts` and `…/events`; how it stood.

use serde::{Deserialize, Serialize};

use super::audit::TrailEvent;
use super::status::WorkerStatus;
use crate::domain::ids::{Attempt, JobId};
use crate::domain::time::Timestamp;

/// The query string of both: which part of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartQuery {
    /// At most so many, 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Continue after the page that gave this `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `GET /api/admin/workers/{id}/attempts`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerAttempts {
    /// Newest first.
    pub attempts: Vec<WorkerAttempt>,
    /// How those of late ended, wherever the page is.
    pub record: WorkerRecord,
    /// Where the next page starts, if there is one.
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
    pub attempt: Attempt,
    /// How many GPUs it was granted.
    pub gpus: u32,
    /// When it was offered.
    pub offered_at: Timestamp,
    /// When the worker took it.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended: `completed`, `failed`, `cancelled`, `lost`, `expired`.
    pub outcome: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// The trainer's exit code.
    pub exit_code: Option<i32>,
}

/// How a worker's attempts ended of late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerRecord {
    /// Since when: the beginning of the day 30 days ago, or of the first of which ended jobs are kept.
    pub since: Timestamp,
    /// How many were offered to it since then.
    pub attempts: u64,
    /// How many of them completed.
    pub completed: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were lost.
    pub lost: u64,
    /// How many people cancelled.
    pub cancelled: u64,
    /// How many it did not take.
    pub expired: u64,
    /// The share of those that completed, 0 to 100, among those that completed, failed or were lost; none if there are
    /// none.
    pub success_percent: Option<f64>,
    /// How many failed one after the other in the last 24 hours, each within a minute of its start, since one went well:
    /// from 3 on it is told as `fast_failures` among what needs a look.
    pub fast_failures: u64,
}

/// `GET /api/admin/workers/{id}/events`: what happened with a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerEvents {
    /// Newest first.
    pub events: Vec<TrailEvent>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The server's clock when it answered.
    pub server_time: Timestamp,
}

/// How a worker stood from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stood {
    /// From this moment.
    pub since: Timestamp,
    /// Where it stood; null while it was never heard of.
    pub status: Option<WorkerStatus>,
}
