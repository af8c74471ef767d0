//! What of ended jobs is not kept any longer.
//!
//! Files are marked in the transaction that forgets them, and removed after it: a crash in between leaves a mark, and no row
//! that speaks of a file which is gone.

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::Result;

/// What is given up of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The logs of its attempts.
    Logs,
    /// The files that it made.
    Artifacts,
    /// The job itself, with all that belongs to it.
    Job,
}

/// Files of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// Its logs.
    Logs,
    /// The files that it made.
    Artifacts,
    /// One of them.
    Artifact {
        /// Which attempt made it.
        attempt: Attempt,
        /// Its path below the job's output.
        path: String,
    },
}

impl Files {
    /// Its word in the database.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Artifacts => "artifacts",
            Self::Artifact { .. } => "artifact",
        }
    }

    /// Which attempt made it and its path, where one file is meant.
    pub fn one(&self) -> Option<(Attempt, &str)> {
        if let Self::Artifact { attempt, path } = self { Some((*attempt, path)) } else { None }
    }
}

/// Giving up.
#[async_trait]
pub trait Retention {
    /// Jobs that ended before a moment and still have this; those that ended first come first.
    async fn ended_before(&mut self, what: What, before: Timestamp, limit: u32) -> Result<Vec<JobId>>;
    /// Forgets it, and marks the files that are to go.
    async fn give_up(&mut self, what: What, job: &JobId) -> Result<()>;
    /// Forgets one file that it made, if it is known, and marks it.
    async fn give_up_file(&mut self, job: &JobId, attempt: Attempt, path: &str) -> Result<()>;
    /// The same for all that an attempt made below a directory, and for the checkpoint that is there.
    async fn give_up_checkpoint(&mut self, job: &JobId, attempt: Attempt, directory: &str) -> Result<()>;
    /// Files that are marked.
    async fn marked(&mut self, limit: u32) -> Result<Vec<(JobId, Files)>>;
    /// Whether they are.
    async fn is_marked(&mut self, job: &JobId, files: &Files) -> Result<bool>;
    /// They are gone.
    async fn unmark(&mut self, job: &JobId, files: &Files) -> Result<()>;
    /// How many bytes all artifacts have.
    async fn artifact_bytes(&mut self) -> Result<u64>;
    /// Ended jobs that have artifacts, with their bytes; those that ended first come first.
    async fn oldest_artifacts(&mut self, limit: u32) -> Result<Vec<(JobId, u64)>>;
}
