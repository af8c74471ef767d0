//! How a worker names an attempt.

use app::domain::ids::{AttemptNumber, JobId, WorkerId};

/// An attempt as named by a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRef {
    pub worker: WorkerId,
    pub job: JobId,
    /// `None`: the attempt that the worker holds.
    pub attempt: Option<AttemptNumber>,
}
