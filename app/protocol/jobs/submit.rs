//! Responses to a submit, and requests that change a job.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::explain::ExplanationView;
use crate::domain::ids::{JobId, WorkerId};
use crate::protocol::jobs::overrides::OverrideValues;
use crate::protocol::status::JobStatus;

/// `POST /api/queue/{id}/retry`; the body is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetryJob {
    /// Where the new job starts: `scratch`, `newest` (the job's newest checkpoint), or a checkpoint's name. If omitted,
    /// `scratch` if the job completed, else `newest`. A job that has not ended can only be forked from a checkpoint by
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<String>,
    /// The name of the new job; an empty one gives it none. If omitted, the job's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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

/// The answer to `SubmitJob`.
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

/// `PATCH /api/queue/{id}`; what is omitted stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribeJob {
    /// The new name; an empty one removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new notes; empty ones remove them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// All tags of the job; to change some of them, use `add_tags` and `remove_tags`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
    /// Tags to add.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub add_tags: BTreeSet<String>,
    /// Tags to remove.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub remove_tags: BTreeSet<String>,
}

/// `POST /api/queue/{id}/priority`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPriority {
    /// The priority, 0 to 50.
    pub priority: u8,
}
