//! Retention of ended jobs.

use app::domain::time::Millis;

/// How long data of jobs is kept; `None`: forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobRetention {
    /// Ended jobs with all their data.
    pub jobs: Option<Millis>,
    /// Their logs.
    pub logs: Option<Millis>,
    /// Their files.
    pub artifacts: Option<Millis>,
    /// The maximum total size of files in bytes; those of the jobs that ended first are removed first.
    pub artifact_bytes: Option<u64>,
}
