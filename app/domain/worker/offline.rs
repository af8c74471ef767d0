//! Why a worker is offline, and which jobs it lost.

use super::{ConnectionState, OfflineCause, Worker};
use crate::domain::ids::JobId;

impl Worker {
    /// Records the jobs that the worker ran when it fell silent, until it returns.
    #[must_use]
    pub fn with_lost_jobs(mut self, jobs: Vec<JobId>) -> Self {
        if let ConnectionState::Offline { lost_jobs, .. } = &mut self.connection {
            *lost_jobs = jobs;
        }
        self
    }

    /// Returns the jobs that it ran when it fell silent, while it is offline.
    pub fn lost_jobs(&self) -> &[JobId] {
        match &self.connection {
            ConnectionState::Offline { lost_jobs, .. } => lost_jobs,
            ConnectionState::NeverConnected | ConnectionState::Connecting { .. } | ConnectionState::Online { .. } => {
                &[]
            }
        }
    }

    /// Returns why it is offline; none if it is not.
    pub fn offline_cause(&self) -> Option<OfflineCause> {
        match self.connection {
            ConnectionState::Offline { cause, .. } => Some(cause),
            ConnectionState::NeverConnected | ConnectionState::Connecting { .. } | ConnectionState::Online { .. } => {
                None
            }
        }
    }
}
