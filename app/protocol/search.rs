//! `GET /api/search`: what a person looks for by a few characters of it.

use serde::{Deserialize, Serialize};

use super::status::{JobStatus, WorkerStatus};

/// `GET /api/search`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchQuery {
    /// Words, each of which is to be in a name, an id or a label: whole, in part, or by first letters. At most 100 characters.
    #[serde(default)]
    pub q: String,
    /// At most so many, 12 if left out and 50 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// `GET /api/search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchPage {
    /// What the caller may see of it, the nearest first. Of jobs, the newest thousand and the one of the very id are
    /// looked at.
    pub found: Vec<Found>,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// What it is.
    pub kind: FoundKind,
    /// Its id; a configuration's is its name.
    pub id: String,
    /// Its name; a job's is that of its configuration.
    pub name: String,
    /// What tells it from others of its name: a worker's host, who submitted a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How a worker stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_status: Option<WorkerStatus>,
    /// How a job stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_status: Option<JobStatus>,
}

/// What can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// A worker.
    Worker,
    /// A job.
    Job,
    /// A configuration.
    Config,
}
