//! Who is taken for gone, and who is forgotten.

use super::time::{Millis, Timestamp};
use super::worker::{Kind, Link, Worker};

/// Offline ephemeral workers are removed so long after they were last heard of.
pub const FORGOTTEN_AFTER: Millis = Millis::seconds(3_600);

/// What becomes of a worker that has been silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is offline; what it held is lost.
    Silent,
    /// It said goodbye and has not come back: what it left running, if anything, is lost.
    Abandoned,
    /// It is removed; its jobs' history stays.
    Removed,
}

/// Judges a worker that was last heard of at `last_seen`, by a server that has been serving since `serving_since`.
///
/// Nobody is silent, or forgotten, before the server has itself been listening for longer than the timeout (invariant
/// I10): whoever waited for it to come back has come by then. The hour after which one is forgotten goes on while no
/// server runs, or those that are started more often would forget nobody. An older agent may be silent for minutes while
/// its trainer is; an open stream speaks for it.
pub fn judge(
    worker: &Worker,
    last_seen: Option<Timestamp>,
    serving_since: Timestamp,
    timeout: Millis,
    now: Timestamp,
) -> Option<Verdict> {
    let heard = last_seen.unwrap_or(worker.created_at).max(worker.link_since());
    let listened = now - serving_since > timeout;
    let silent = listened && now - heard > timeout;
    match &worker.link {
        Link::Online { capability, .. } if capability.is_older() => None,
        Link::Connecting { .. } | Link::Online { .. } => silent.then_some(Verdict::Silent),
        Link::Offline { .. } => {
            let forgotten = listened && now - heard >= FORGOTTEN_AFTER;
            match worker.kind {
                Some(Kind::Ephemeral) if forgotten => Some(Verdict::Removed),
                _ => silent.then_some(Verdict::Abandoned),
            }
        }
        Link::NeverSeen => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::worker::OfflineCause;
    use crate::domain::worker::tests::{made, online};

    const TIMEOUT: Millis = Millis::seconds(120);
    const HEARD: Timestamp = Timestamp(10_000_000);

    fn at(seconds: i64) -> Timestamp {
        HEARD + Millis::seconds(seconds)
    }

    fn verdict(worker: &Worker, seconds: i64) -> Option<Verdict> {
        judge(worker, Some(HEARD), Timestamp(0), TIMEOUT, at(seconds))
    }

    fn ours(worker: Worker) -> Worker {
        let capability = Capability { protocol: Some(1), ..Capability::default() };
        match worker.link {
            Link::Online { since, stream, .. } => Worker { link: Link::Online { since, capability, stream }, ..worker },
            _ => worker,
        }
    }

    #[test]
    fn silence_counts_after_the_timeout_and_not_on_it() {
        let connecting = online().stopped_listening(HEARD, "s");
        for worker in [ours(online()), connecting] {
            assert_eq!(verdict(&worker, 120), None);
            assert_eq!(
                judge(&worker, Some(HEARD), Timestamp(0), TIMEOUT, Timestamp(at(120).0 + 1)),
                Some(Verdict::Silent)
            );
        }
    }

    #[test]
    fn an_open_stream_speaks_for_an_older_agent() {
        assert_eq!(verdict(&online(), 100_000), None);
        assert_eq!(verdict(&online().stopped_listening(HEARD, "s"), 121), Some(Verdict::Silent));
    }

    #[test]
    fn nobody_is_silent_to_a_server_that_has_just_come() {
        let worker = ours(online());
        assert_eq!(judge(&worker, Some(HEARD), at(500), TIMEOUT, at(620)), None);
        assert_eq!(judge(&worker, Some(HEARD), at(500), TIMEOUT, at(621)), Some(Verdict::Silent));
    }

    #[test]
    fn what_its_connection_did_last_counts_as_a_word() {
        let worker = online().stopped_listening(at(300), "s");
        assert_eq!(verdict(&worker, 420), None);
        assert_eq!(verdict(&worker, 421), Some(Verdict::Silent));
        assert_eq!(judge(&worker, None, Timestamp(0), TIMEOUT, at(421)), Some(Verdict::Silent));
    }

    #[test]
    fn who_said_goodbye_has_as_long_to_come_back_as_who_fell_silent() {
        let gone = online().gone(at(0), OfflineCause::Disconnected);
        assert_eq!((verdict(&gone, 120), verdict(&gone, 121)), (None, Some(Verdict::Abandoned)));
    }

    #[test]
    fn ephemeral_workers_are_forgotten_an_hour_after_their_last_word() {
        let gone = |kind| Worker { kind: Some(kind), ..online().gone(at(0), OfflineCause::Disconnected) };
        assert_eq!(verdict(&gone(Kind::Ephemeral), 3_599), Some(Verdict::Abandoned));
        assert_eq!(verdict(&gone(Kind::Ephemeral), 3_600), Some(Verdict::Removed));
        assert_eq!(verdict(&gone(Kind::Persistent), 1_000_000), Some(Verdict::Abandoned));
        let by_one_since = |start, seconds| judge(&gone(Kind::Ephemeral), None, at(start), TIMEOUT, at(seconds));
        assert_eq!((by_one_since(3_000, 3_120), by_one_since(3_000, 3_121)), (None, Some(Verdict::Abandoned)));
        assert_eq!(
            (by_one_since(3_000, 3_599), by_one_since(3_000, 3_600)),
            (Some(Verdict::Abandoned), Some(Verdict::Removed))
        );
        assert_eq!((by_one_since(9_000, 9_120), by_one_since(9_000, 9_121)), (None, Some(Verdict::Removed)));
        assert_eq!(verdict(&Worker { kind: Some(Kind::Ephemeral), ..made() }, 1_000_000), None);
    }
}
