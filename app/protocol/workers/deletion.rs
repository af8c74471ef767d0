//! Whether a worker can be deleted, according to its view.

use crate::domain::time::Timestamp;
use crate::protocol::status::{JobStatus, WorkerStatus};
use crate::protocol::workers::WorkerView;

/// Whether a worker can be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionStatus {
    /// It can be deleted.
    Allowed,
    /// Its agent is connected.
    AgentConnected,
    /// Its connection was lost while it ran a job: it can be deleted at this time unless it reconnects.
    AllowedAfter(Timestamp),
}

impl WorkerView {
    /// Returns whether the worker can be deleted; the server decides in the same way.
    pub fn deletion_status(&self) -> DeletionStatus {
        let has_running_job = self.jobs.iter().any(|job| job.status != JobStatus::Offered);
        match (self.status, self.offline_at) {
            (status, None) if status != WorkerStatus::Offline => DeletionStatus::AgentConnected,
            (_, Some(at)) if has_running_job => DeletionStatus::AllowedAfter(at),
            (_, _) => DeletionStatus::Allowed,
        }
    }
}
