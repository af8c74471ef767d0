//! Training configurations and their revisions. A revision is immutable, so jobs always run the one that they were
//! submitted with.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// A revision of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConfig {
    pub name: String,
    pub revision: u32,
    /// SHA-256 of the bundle, in hex.
    pub sha256: String,
    pub files: BTreeMap<String, String>,
    pub created_at: Timestamp,
    /// Who stored it; `None` if unknown.
    pub created_by: Option<String>,
    /// The owner of the configuration; `None` if unknown.
    pub owner: Option<String>,
}

/// A revision without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRevision {
    pub revision: u32,
    /// SHA-256 of the bundle, in hex.
    pub sha256: String,
    pub created_at: Timestamp,
    /// Who stored it; `None` if unknown.
    pub created_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionUsage {
    pub revision: u32,
    pub state: String,
    pub jobs: u64,
}

#[async_trait]
pub trait ConfigQueries {
    /// The newest revision of each configuration, by name, without deleted ones.
    async fn configs(&mut self) -> Result<Vec<StoredConfig>>;
    /// The newest revision, unless deleted.
    async fn config(&mut self, name: &str) -> Result<Option<Arc<StoredConfig>>>;
    /// One revision, also of a deleted configuration.
    async fn config_revision(&mut self, name: &str, revision: u32) -> Result<Option<Arc<StoredConfig>>>;
    /// The number of the newest revision, also of a deleted configuration; 0 if there never was one.
    async fn newest_revision(&mut self, name: &str) -> Result<u32>;
    /// All revisions, newest first, also of a deleted configuration.
    async fn revisions(&mut self, name: &str) -> Result<Vec<StoredRevision>>;
    /// The jobs that use its revisions: of one user, or of all.
    async fn revision_usage(&mut self, name: &str, user: Option<&str>) -> Result<Vec<RevisionUsage>>;
    /// The newest revision that jobs of one user use; `None` without such a job.
    async fn last_run_revision(&mut self, name: &str, user: &str) -> Result<Option<u32>>;
    /// Inserts a revision as the newest one.
    async fn insert_config(&mut self, config: &StoredConfig) -> Result<()>;
    /// The total size of all revisions' files in bytes, of one user or of all.
    async fn config_bytes(&mut self, by: Option<&str>) -> Result<u64>;
    /// Deletes a configuration; its revisions stay for the jobs that use them.
    async fn remove_config(&mut self, name: &str) -> Result<()>;
}
