//! The same done to several at once: `POST /api/admin/workers/bulk/…` and `POST /api/queue/bulk/…`.

use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::status::BulkOutcome;
use super::workers::DrainWorker;
use crate::domain::ids::JobId;

/// The most that one request names.
pub const MOST: usize = 500;

/// To which of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkIds {
    /// Their ids, 500 at most; one that stands there twice counts once.
    pub ids: Vec<String>,
}

/// `POST /api/admin/workers/bulk/drain`: which of them, why, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkDrain {
    /// Their ids, 500 at most; one that stands there twice counts once.
    pub ids: Vec<String>,
    /// The same for each.
    #[serde(flatten)]
    pub drain: DrainWorker,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkResults {
    /// Of each, in the order of the request.
    pub results: Vec<BulkResult>,
}

/// What became of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkResult {
    /// Its id.
    pub id: String,
    /// Whether it was done.
    pub outcome: BulkOutcome,
    /// The job that was made of it, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_job_id: Option<JobId>,
    /// Why it was refused, as if it had been asked for alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}
