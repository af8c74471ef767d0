//! Training configurations and their revisions. A revision never changes: jobs pin it.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// One revision of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConfig {
    /// Its name.
    pub name: String,
    /// The revision, from 1.
    pub revision: u32,
    /// SHA-256 of the bundle, in hex.
    pub sha256: String,
    /// Text by path.
    pub files: BTreeMap<String, String>,
    /// When it came.
    pub created_at: Timestamp,
    /// Who stored it; none if nobody knows.
    pub created_by: Option<String>,
    /// Whose the configuration is; none if nobody knows.
    pub owner: Option<String>,
}

/// A revision without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRevision {
    /// The revision, from 1.
    pub revision: u32,
    /// SHA-256 of the bundle, in hex.
    pub sha256: String,
    /// When it came.
    pub created_at: Timestamp,
    /// Who stored it; none if nobody knows.
    pub created_by: Option<String>,
}

/// How many jobs in a state pinned a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The revision.
    pub revision: u32,
    /// The state's word.
    pub state: String,
    /// How many.
    pub jobs: u64,
}

/// Configurations.
#[async_trait]
pub trait Configs {
    /// The newest revision of each, by name, without those removed.
    async fn configs(&mut self) -> Result<Vec<StoredConfig>>;
    /// The newest revision, unless removed.
    async fn config(&mut self, name: &str) -> Result<Option<Arc<StoredConfig>>>;
    /// One revision, also of a removed one.
    async fn config_revision(&mut self, name: &str, revision: u32) -> Result<Option<Arc<StoredConfig>>>;
    /// The newest revision's number, removed or not; 0 if there never was one.
    async fn newest_revision(&mut self, name: &str) -> Result<u32>;
    /// Every revision, the newest first, also of a removed one.
    async fn revisions(&mut self, name: &str) -> Result<Vec<StoredRevision>>;
    /// Which jobs pinned its revisions: of one person, or of all.
    async fn uses(&mut self, name: &str, user: Option<&str>) -> Result<Vec<Use>>;
    /// The newest revision that jobs of one person pinned; none if they have no job with this configuration.
    async fn last_run(&mut self, name: &str, user: &str) -> Result<Option<u32>>;
    /// Adds a revision and makes it the newest.
    async fn insert_config(&mut self, config: &StoredConfig) -> Result<()>;
    /// How many bytes the files of all revisions have: of those that one person stored, or of all.
    async fn config_bytes(&mut self, by: Option<&str>) -> Result<u64>;
    /// Removes it from the list; its revisions stay for the jobs that pinned them.
    async fn remove_config(&mut self, name: &str) -> Result<()>;
}
