//! Why a worker is offline, and which job it lost.

use super::{ConnectionState, OfflineCause, Worker};
use crate::domain::ids::JobId;

impl Worker {
    /// Records a job that the worker ran when it fell silent, until it returns.
    #[must_use]
    pub fn with_lost_job(mut self, job: Option<JobId>) -> Self {
        if let ConnectionState::Offline { lost_job, .. } = &mut self.connection {
            *lost_job = job;
        }
        self
    }

    /// Returns a job that it ran when it fell silent, while it is offline.
    pub fn lost_job(&self) -> Option<&JobId> {
        match &self.connection {
            ConnectionState::Offline { lost_job, .. } => lost_job.as_ref(),
            ConnectionState::NeverConnected | ConnectionState::Connecting { .. } | ConnectionState::Online { .. } => {
                None
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
