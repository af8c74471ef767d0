//! `/api/configs`: training configurations, each a directory of text files with revisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::jobs::JobCounts;
use crate::domain::time::Timestamp;

/// The files of one configuration: `PUT /api/configs/{name}`, and the bundle of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigBundle {
    /// File contents by relative path; `config.json` is required.
    pub files: BTreeMap<String, String>,
}

/// Maximum number of characters of a file name that a problem repeats.
const MAX_ECHOED_CHARS: usize = 80;

/// Shortens a file name for problems.
pub fn truncate_path(path: &str) -> String {
    path.chars().take(MAX_ECHOED_CHARS).collect()
}

/// Returns the field name of a problem about a file.
pub fn file_field(path: &str) -> String {
    format!("files/{}", truncate_path(path))
}

/// A configuration in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigView {
    /// The configuration's name.
    pub name: String,
    /// The newest revision, or the requested one, from 1.
    pub revision: u32,
    /// SHA-256 of that revision's bundle, in hex.
    pub sha256: String,
    /// When that revision was stored.
    pub updated_at: Timestamp,
    /// The owner, who may change the configuration, as may users with `config.manage`. Null if unknown.
    #[serde(default)]
    pub owner: Option<String>,
    /// The names of the files.
    pub files: Vec<String>,
    /// Values of the configuration for the list (`model_type`, `model_family`…).
    pub summary: BTreeMap<String, String>,
}

/// `GET /api/configs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigsPage {
    /// The configurations, by name.
    pub configs: Vec<ConfigView>,
}

/// `GET /api/configs/{name}`, and `GET /api/configs/{name}/revisions/{revision}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigDetail {
    /// The configuration, as in the list.
    #[serde(flatten)]
    pub config: ConfigView,
    /// The revision's files.
    pub bundle: ConfigBundle,
}

/// `GET /api/configs/{name}/revisions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionsPage {
    /// The revisions, newest first.
    pub revisions: Vec<RevisionView>,
    /// Whether the configuration was removed from the list.
    pub removed: bool,
}

/// One revision of a configuration, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionView {
    /// The revision's number, from 1.
    pub revision: u32,
    /// SHA-256 of its bundle, in hex.
    pub sha256: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Who stored it, if the audit log still has the entry.
    pub created_by: Option<String>,
    /// Number of jobs that use this revision, among those that the caller may see.
    pub jobs: u64,
    /// Number of those jobs that have not ended.
    pub active_jobs: u64,
    /// Those jobs by status.
    #[serde(default)]
    pub job_counts: JobCounts,
}
