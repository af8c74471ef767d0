//! Retention of ended jobs.
//!
//! Files are marked in the transaction that deletes their records, and removed after it: a crash in between leaves a
//! mark, and never a record of a missing file.

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainedKind {
    Logs,
    Artifacts,
    Job,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovedFiles {
    Logs,
    Artifacts,
    Artifact { attempt: AttemptNumber, path: String },
}

impl RemovedFiles {
    /// The value in the database.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Artifacts => "artifacts",
            Self::Artifact { .. } => "artifact",
        }
    }

    /// Attempt and path, if this is one file.
    pub fn artifact(&self) -> Option<(AttemptNumber, &str)> {
        if let Self::Artifact { attempt, path } = self { Some((*attempt, path)) } else { None }
    }
}

#[async_trait]
pub trait RetentionQueries {
    /// Jobs that ended before this time and still have this data, those that ended first first. Jobs for which
    /// [`is_resume_source`] holds are only returned for logs.
    ///
    /// [`is_resume_source`]: RetentionQueries::is_resume_source
    async fn ended_before(&mut self, kind: RetainedKind, before: Timestamp, limit: u32) -> Result<Vec<JobId>>;
    /// Returns whether a job that has not ended starts from a checkpoint of this one.
    async fn is_resume_source(&mut self, job: &JobId) -> Result<bool>;
    /// Deletes the records, and marks the files for removal.
    async fn remove_retained(&mut self, kind: RetainedKind, job: &JobId) -> Result<()>;
    /// Deletes the record of one file, if there is one, and marks the file.
    async fn remove_artifact(&mut self, job: &JobId, attempt: AttemptNumber, path: &str) -> Result<()>;
    /// Deletes the records of all files of an attempt below a directory, with its checkpoint, and marks the files.
    async fn remove_checkpoint(&mut self, job: &JobId, attempt: AttemptNumber, directory: &str) -> Result<()>;
    /// Files that are marked for removal, in a fixed order, after these.
    async fn marked_files(
        &mut self,
        after: Option<&(JobId, RemovedFiles)>,
        limit: u32,
    ) -> Result<Vec<(JobId, RemovedFiles)>>;
    /// Returns whether files are marked.
    async fn is_marked(&mut self, job: &JobId, files: &RemovedFiles) -> Result<bool>;
    async fn unmark(&mut self, job: &JobId, files: &RemovedFiles) -> Result<()>;
    /// The total size of all artifacts, in bytes.
    async fn artifact_bytes(&mut self) -> Result<u64>;
    /// Ended jobs with artifacts and their size in bytes, those that ended first first. Without jobs for which
    /// [`is_resume_source`] holds.
    ///
    /// [`is_resume_source`]: RetentionQueries::is_resume_source
    async fn oldest_artifacts(&mut self, limit: u32) -> Result<Vec<(JobId, u64)>>;
}
