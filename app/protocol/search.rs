//! `GET /api/search`: quick search by a few characters.

use serde::{Deserialize, Serialize};

use super::status::{JobStatus, WorkerStatus};

/// Query string of `GET /api/search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchQuery {
    /// Words that must each match a name, an ID or a label: whole, in part, or by initials. At most 100 characters.
    #[serde(default)]
    pub q: String,
    /// Maximum number of results; if omitted, 12; at most 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `GET /api/search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchPage {
    /// The results that the caller may see, best match first. The newest 1000 jobs are searched by words; older jobs
    /// only by the whole query: in one of their texts, or as a prefix of their ID.
    pub found: Vec<SearchHit>,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchHit {
    /// The kind of result.
    pub kind: SearchHitKind,
    /// Its ID; for a configuration, its name.
    pub id: String,
    /// Its name; for a job, the name of its configuration.
    pub name: String,
    /// What distinguishes it from others of the same name: the host of a worker, the user who submitted a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The worker's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_status: Option<WorkerStatus>,
    /// The job's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<JobStatus>,
}

/// The kind of a search result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchHitKind {
    /// A worker.
    Worker,
    /// A job.
    Job,
    /// A configuration.
    Config,
}
