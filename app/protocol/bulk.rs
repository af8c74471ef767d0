//! Bulk actions: `POST /api/admin/workers/bulk/…` and `POST /api/queue/bulk/…`.

use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::status::BulkOutcome;
use super::workers::DrainWorker;
use crate::domain::ids::JobId;

/// Maximum number of IDs in one request.
pub const MAX_BULK_IDS: usize = 500;

/// The targets of a bulk action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkIds {
    /// The IDs, at most 500; duplicates count once.
    pub ids: Vec<String>,
}

/// `POST /api/admin/workers/bulk/drain`: which workers, why, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkDrain {
    /// The IDs, at most 500; duplicates count once.
    pub ids: Vec<String>,
    /// The drain request, applied to each worker.
    #[serde(flatten)]
    pub drain: DrainWorker,
}

/// The results of a bulk action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkResults {
    /// One result for each ID, in the order of the request.
    pub results: Vec<BulkResult>,
}

/// The result for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkResult {
    /// The target's ID.
    pub id: String,
    /// The outcome.
    pub outcome: BulkOutcome,
    /// The new job, if one was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_job_id: Option<JobId>,
    /// Why the action was rejected, as the single request would report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}
