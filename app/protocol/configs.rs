//! `/api/configs`: training configurations, each a directory of text files with revisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;

/// The files of one configuration: `PUT /api/configs/{name}`, and what a job takes along.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bundle {
    /// Text by relative path; `config.json` must be among them.
    pub files: BTreeMap<String, String>,
}

/// A configuration in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigView {
    /// Its name.
    pub name: String,
    /// The newest revision, or the one that was asked for, from 1.
    pub revision: u32,
    /// SHA-256 of that revision's bundle, in hex.
    pub sha256: String,
    /// When that revision came.
    pub updated_at: Timestamp,
    /// Whose the configuration is: they, and whoever has `config.manage`, may change it. Null if nobody knows.
    #[serde(default)]
    pub owner: Option<String>,
    /// The files' names.
    pub files: Vec<String>,
    /// What the configuration says it trains (`model_type`, `model_family`…), for the list.
    pub summary: BTreeMap<String, String>,
}

/// `GET /api/configs`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigsPage {
    /// By name.
    pub configs: Vec<ConfigView>,
}

/// `GET /api/configs/{name}`, and `GET /api/configs/{name}/revisions/{revision}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigDetail {
    /// As in the list.
    #[serde(flatten)]
    pub config: ConfigView,
    /// The revision's files.
    pub bundle: Bundle,
}

/// `GET /api/configs/{name}/revisions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionsPage {
    /// The newest first.
    pub revisions: Vec<RevisionView>,
    /// Whether the configuration was taken off the list.
    pub removed: bool,
}

/// One revision of a configuration, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionView {
    /// Its number, from 1.
    pub revision: u32,
    /// SHA-256 of its bundle, in hex.
    pub sha256: String,
    /// When it came.
    pub created_at: Timestamp,
    /// Who stored it, as long as the audit trail knows.
    pub created_by: Option<String>,
    /// How many jobs pinned it, of those that one may see.
    pub jobs: u64,
    /// How many of them have not ended.
    pub active_jobs: u64,
}
