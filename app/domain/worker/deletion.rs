//! When a worker can be deleted.

use super::{ConnectionState, Worker, WorkerTransitionError};
use crate::domain::job::{Job, JobState};
use crate::domain::time::Timestamp;

impl Worker {
    /// Checks whether the worker can be deleted, given the jobs with an active lease and when it is marked offline if
    /// it stays silent.
    ///
    /// Its token is deleted with it, so an agent that reconnects after a crash is rejected. A trainer may have survived
    /// the crash, and its work would be lost; therefore the whole timeout must pass first.
    pub fn check_deletion(&self, held: &[Job], offline_at: Timestamp) -> Result<(), WorkerTransitionError> {
        let has_accepted = |job: &Job| !matches!(job.state, JobState::Offered { .. });
        match self.connection {
            ConnectionState::Connecting { connection_lost: true, .. } if held.iter().any(has_accepted) => {
                Err(WorkerTransitionError::ConnectionLost { offline_at })
            }
            ConnectionState::NeverConnected
            | ConnectionState::Offline { .. }
            | ConnectionState::Connecting { connection_lost: true, .. } => Ok(()),
            ConnectionState::Connecting { connection_lost: false, .. } | ConnectionState::Online { .. } => {
                Err(WorkerTransitionError::Connected)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::fixtures::{gpu_demand, job, worker_id};
    use crate::domain::ids::AttemptNumber;
    use crate::domain::job::AttemptReport;
    use crate::domain::worker::OfflineCause;
    use crate::domain::worker::WorkerKind;
    use crate::domain::worker::tests::{new_worker, online_worker};

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(121_000);

    #[test]
    fn connected_or_recoverable_workers_are_not_deleted() {
        let lost = online_worker().stream_closed(NOW, "s");
        let registered = lost.clone().registered(NOW, Capability::default(), WorkerKind::Persistent);
        let offered = || job(1, gpu_demand(1)).offered(NOW, worker_id(1), vec![], LATER).expect("queued");
        let running = || {
            offered()
                .reported(NOW, &worker_id(1), AttemptNumber(1), AttemptReport::Running)
                .expect("the newest attempt")
        };
        let offline = |cause| online_worker().went_offline(NOW, cause);
        let is_expected = Err(WorkerTransitionError::ConnectionLost { offline_at: LATER });
        for (worker, held, expected) in [
            (new_worker(), vec![], Ok(())),
            (online_worker(), vec![], Err(WorkerTransitionError::Connected)),
            (registered, vec![], Err(WorkerTransitionError::Connected)),
            (lost.clone(), vec![], Ok(())),
            (lost.clone(), vec![offered()], Ok(())),
            (lost, vec![offered(), running()], is_expected),
            (offline(OfflineCause::Disconnected), vec![running()], Ok(())),
            (offline(OfflineCause::HeartbeatTimeout), vec![], Ok(())),
        ] {
            assert_eq!(worker.check_deletion(&held, LATER), expected, "{worker:?} with {held:?}");
        }
    }
}
