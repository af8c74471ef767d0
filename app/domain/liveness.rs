//! When silent workers are marked offline, and when their records are removed.

use super::time::{Millis, Timestamp};
use super::worker::{ConnectionState, Worker, WorkerKind};

/// Offline ephemeral workers are removed this long after their last contact.
pub const EPHEMERAL_RETENTION: Millis = Millis::from_secs(3_600);

/// What happens to a silent worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LivenessVerdict {
    /// It is marked offline; its attempts are lost.
    HeartbeatTimeout,
    /// It is offline and still silent: attempts that it left running are lost.
    NotReturned,
    /// It is removed; the history of its jobs remains.
    Removed,
}

/// Judges a worker with last contact at `last_seen`, by a server that has been serving since `serving_since`.
///
/// No worker is marked offline or removed until the server has been listening for longer than the timeout (invariant
/// I10), so that workers that waited for the server have reconnected. The hour before the removal includes the time
/// while no server runs; otherwise a server that is restarted often would remove none. An older agent may be silent for
/// minutes while its trainer runs; its stream counts as contact, open or just closed.
pub fn judge_liveness(
    worker: &Worker,
    last_seen: Option<Timestamp>,
    serving_since: Timestamp,
    timeout: Millis,
    now: Timestamp,
) -> Option<LivenessVerdict> {
    let contact_at = last_contact(worker, last_seen);
    let has_served_long_enough = now - serving_since > timeout;
    let is_silent = now > offline_at(worker, last_seen, serving_since, timeout);
    match &worker.connection {
        ConnectionState::Online { capability, .. } if capability.is_older_agent() => None,
        ConnectionState::Connecting { .. } | ConnectionState::Online { .. } => {
            is_silent.then_some(LivenessVerdict::HeartbeatTimeout)
        }
        ConnectionState::Offline { .. } => {
            let is_removable = has_served_long_enough && now - contact_at >= EPHEMERAL_RETENTION;
            match worker.kind {
                Some(WorkerKind::Ephemeral) if is_removable => Some(LivenessVerdict::Removed),
                _ => is_silent.then_some(LivenessVerdict::NotReturned),
            }
        }
        ConnectionState::NeverConnected => None,
    }
}

/// Returns when a worker is marked offline if it stays silent.
pub fn offline_at(
    worker: &Worker,
    last_seen: Option<Timestamp>,
    serving_since: Timestamp,
    timeout: Millis,
) -> Timestamp {
    last_contact(worker, last_seen).max(serving_since) + timeout
}

fn last_contact(worker: &Worker, last_seen: Option<Timestamp>) -> Timestamp {
    let last_data = last_seen.unwrap_or(worker.created_at);
    match &worker.connection {
        // The end of a dead connection is noticed long after the last byte, and an agent sends heartbeats besides.
        ConnectionState::Connecting { connection_lost: true, capability, .. } if !capability.is_older_agent() => {
            last_data
        }
        _ => last_data.max(worker.connection_since()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::worker::OfflineCause;
    use crate::domain::worker::tests::{new_worker, online_worker};

    const TIMEOUT: Millis = Millis::from_secs(120);
    const LAST_CONTACT: Timestamp = Timestamp(10_000_000);

    fn at(seconds: i64) -> Timestamp {
        LAST_CONTACT + Millis::from_secs(seconds)
    }

    fn verdict(worker: &Worker, seconds: i64) -> Option<LivenessVerdict> {
        judge_liveness(worker, Some(LAST_CONTACT), Timestamp(0), TIMEOUT, at(seconds))
    }

    fn with_current_agent(worker: Worker) -> Worker {
        let capability = Capability { protocol: Some(1), ..Capability::default() };
        match worker.connection {
            ConnectionState::Online { since, stream, .. } => {
                Worker { connection: ConnectionState::Online { since, capability, stream }, ..worker }
            }
            _ => worker,
        }
    }

    #[test]
    fn worker_is_offline_only_after_the_timeout() {
        let connecting = online_worker().stream_closed(LAST_CONTACT, "s");
        for worker in [with_current_agent(online_worker()), connecting] {
            assert_eq!(verdict(&worker, 120), None);
            assert_eq!(
                judge_liveness(&worker, Some(LAST_CONTACT), Timestamp(0), TIMEOUT, Timestamp(at(120).0 + 1)),
                Some(LivenessVerdict::HeartbeatTimeout)
            );
        }
    }

    #[test]
    fn open_stream_counts_as_contact_of_an_older_agent() {
        assert_eq!(verdict(&online_worker(), 100_000), None);
        assert_eq!(
            verdict(&online_worker().stream_closed(LAST_CONTACT, "s"), 121),
            Some(LivenessVerdict::HeartbeatTimeout)
        );
    }

    #[test]
    fn no_worker_is_offline_just_after_server_start() {
        let worker = with_current_agent(online_worker());
        assert_eq!(judge_liveness(&worker, Some(LAST_CONTACT), at(500), TIMEOUT, at(620)), None);
        assert_eq!(
            judge_liveness(&worker, Some(LAST_CONTACT), at(500), TIMEOUT, at(621)),
            Some(LivenessVerdict::HeartbeatTimeout)
        );
    }

    #[test]
    fn connection_change_counts_as_contact() {
        let worker = online_worker().stream_closed(at(300), "s");
        assert_eq!(verdict(&worker, 420), None);
        assert_eq!(verdict(&worker, 421), Some(LivenessVerdict::HeartbeatTimeout));
        assert_eq!(
            judge_liveness(&worker, None, Timestamp(0), TIMEOUT, at(421)),
            Some(LivenessVerdict::HeartbeatTimeout)
        );
    }

    #[test]
    fn end_of_a_stream_is_no_contact_of_an_agent_with_heartbeats() {
        let worker = with_current_agent(online_worker()).stream_closed(at(75), "s");
        assert_eq!((verdict(&worker, 120), verdict(&worker, 121)), (None, Some(LivenessVerdict::HeartbeatTimeout)));
        assert_eq!(offline_at(&worker, Some(LAST_CONTACT), Timestamp(0), TIMEOUT), at(120));
    }

    #[test]
    fn disconnected_and_silent_workers_have_the_same_timeout() {
        let offline = online_worker().went_offline(at(0), OfflineCause::Disconnected);
        assert_eq!((verdict(&offline, 120), verdict(&offline, 121)), (None, Some(LivenessVerdict::NotReturned)));
    }

    #[test]
    fn ephemeral_workers_are_removed_an_hour_after_last_contact() {
        let offline =
            |kind| Worker { kind: Some(kind), ..online_worker().went_offline(at(0), OfflineCause::Disconnected) };
        assert_eq!(verdict(&offline(WorkerKind::Ephemeral), 3_599), Some(LivenessVerdict::NotReturned));
        assert_eq!(verdict(&offline(WorkerKind::Ephemeral), 3_600), Some(LivenessVerdict::Removed));
        assert_eq!(verdict(&offline(WorkerKind::Persistent), 1_000_000), Some(LivenessVerdict::NotReturned));
        let verdict_of_server_since =
            |start, seconds| judge_liveness(&offline(WorkerKind::Ephemeral), None, at(start), TIMEOUT, at(seconds));
        assert_eq!(
            (verdict_of_server_since(3_000, 3_120), verdict_of_server_since(3_000, 3_121)),
            (None, Some(LivenessVerdict::NotReturned))
        );
        assert_eq!(
            (verdict_of_server_since(3_000, 3_599), verdict_of_server_since(3_000, 3_600)),
            (Some(LivenessVerdict::NotReturned), Some(LivenessVerdict::Removed))
        );
        assert_eq!(
            (verdict_of_server_since(9_000, 9_120), verdict_of_server_since(9_000, 9_121)),
            (None, Some(LivenessVerdict::Removed))
        );
        assert_eq!(verdict(&Worker { kind: Some(WorkerKind::Ephemeral), ..new_worker() }, 1_000_000), None);
    }
}
