//! The status of a worker over time, computed from the audit log.

use super::{ConnectionStatus, Worker, WorkerState};
use crate::domain::audit::AuditAction;
use crate::domain::time::Timestamp;

/// Audit actions that change the connection: the newest one is valid.
pub const CONNECTION_ACTIONS: [AuditAction; 5] = [
    AuditAction::WorkerCreated,
    AuditAction::WorkerRegistered,
    AuditAction::WorkerOnline,
    AuditAction::WorkerConnecting,
    AuditAction::WorkerOffline,
];
/// Audit actions that change the drain.
pub const DRAIN_ACTIONS: [AuditAction; 2] = [AuditAction::WorkerDrained, AuditAction::WorkerResumed];

/// A status from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusSpan {
    /// Start of the status; it lasts until the next one.
    pub since: Timestamp,
    /// The status; none while the agent had never connected.
    pub status: Option<WorkerState>,
}

/// A change of the status.
#[derive(Debug, Clone, Copy)]
enum StatusChange {
    Connection(ConnectionStatus),
    Draining(bool),
    Retired,
    Offered,
    Ended,
}

impl StatusChange {
    const fn from_action(action: AuditAction) -> Option<Self> {
        Some(match action {
            AuditAction::WorkerCreated => Self::Connection(ConnectionStatus::NeverConnected),
            AuditAction::WorkerRegistered | AuditAction::WorkerConnecting => {
                Self::Connection(ConnectionStatus::Connecting)
            }
            AuditAction::WorkerOnline => Self::Connection(ConnectionStatus::Online),
            AuditAction::WorkerOffline => Self::Connection(ConnectionStatus::Offline),
            AuditAction::WorkerDrained => Self::Draining(true),
            AuditAction::WorkerResumed => Self::Draining(false),
            _ => return None,
        })
    }
}

#[derive(Default)]
struct TimelineState {
    /// None until an entry is known.
    connection: Option<ConnectionStatus>,
    draining: bool,
    retired: bool,
    jobs: usize,
}

impl TimelineState {
    const fn apply(&mut self, change: StatusChange) {
        match change {
            StatusChange::Connection(connection) => self.connection = Some(connection),
            StatusChange::Draining(drains) => self.draining = drains,
            StatusChange::Retired => self.retired = true,
            StatusChange::Offered => self.jobs += 1,
            StatusChange::Ended => self.jobs = self.jobs.saturating_sub(1),
        }
    }

    fn span_from(&self, since: Timestamp) -> Option<StatusSpan> {
        let connection = self.connection?;
        let status = (connection != ConnectionStatus::NeverConnected)
            .then(|| connection.worker_state(self.draining || self.retired, self.jobs > 0));
        Some(StatusSpan { since, status })
    }
}

/// Returns the status of a worker since a time, oldest first, without gaps. The first one may have begun earlier, or
/// its beginning is no longer recorded.
///
/// `audit_log` are the audit entries since then, plus the newest earlier entry of [`CONNECTION_ACTIONS`] and of
/// [`DRAIN_ACTIONS`]; `leases` are the start and end of each job.
pub fn status_timeline(
    worker: &Worker,
    audit_log: impl IntoIterator<Item = (Timestamp, AuditAction)>,
    leases: impl IntoIterator<Item = (Timestamp, Option<Timestamp>)>,
    since: Timestamp,
) -> Vec<StatusSpan> {
    let mut changes: Vec<_> =
        audit_log.into_iter().filter_map(|(at, action)| Some((at, StatusChange::from_action(action)?))).collect();
    // Without an entry, the current state also applies to the past.
    if !changes.iter().any(|(_, change)| matches!(change, StatusChange::Connection(_))) {
        changes.push((
            worker.connection_since(),
            StatusChange::Connection(ConnectionStatus::from_state(&worker.connection)),
        ));
    }
    let drains = worker
        .drain
        .as_ref()
        .filter(|_| !changes.iter().any(|(_, change)| matches!(change, StatusChange::Draining(_))));
    changes.extend(drains.map(|drain| (drain.since, StatusChange::Draining(true))));
    changes.extend(worker.retired_at.map(|at| (at, StatusChange::Retired)));
    for (offered, ended) in leases {
        changes.push((offered, StatusChange::Offered));
        changes.extend(ended.map(|at| (at, StatusChange::Ended)));
    }
    changes.sort_by_key(|(at, _)| *at);
    let first = changes
        .iter()
        .find_map(|(_, change)| if let StatusChange::Draining(drains) = change { Some(*drains) } else { None });
    // A worker that was resumed must have been draining before.
    let mut state = TimelineState { draining: first == Some(false), ..TimelineState::default() };
    let mut spans: Vec<StatusSpan> = Vec::new();
    for simultaneous in changes.chunk_by(|(a, _), (b, _)| a == b) {
        for (_, change) in simultaneous {
            state.apply(*change);
        }
        let is_new = |span: &StatusSpan| spans.last().is_none_or(|last| last.status != span.status);
        spans.extend(state.span_from(simultaneous[0].0).filter(is_new));
    }
    let earlier = spans.iter().skip(1).take_while(|span| span.since <= since).count();
    spans.split_off(earlier)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::ids::WorkerId;
    use crate::domain::worker::{ConnectionState, Drain};

    fn created() -> Worker {
        Worker::new(WorkerId::parse("w_1").expect("an id"), "gpu-1".to_owned(), Timestamp(0))
    }

    /// The timeline as text: start and status of each span.
    fn describe_spans(worker: &Worker, log: &[(i64, AuditAction)], held: &[(i64, Option<i64>)], since: i64) -> String {
        let log = log.iter().map(|(at, action)| (Timestamp(*at), *action));
        let held = held.iter().map(|(from, until)| (Timestamp(*from), until.map(Timestamp)));
        let spans = status_timeline(worker, log, held, Timestamp(since));
        let name =
            |status: Option<WorkerState>| status.map_or_else(|| "Never".to_owned(), |status| format!("{status:?}"));
        spans.iter().map(|span| format!("{} {}", span.since.0, name(span.status))).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn timeline_is_computed_from_the_audit_log() {
        use AuditAction::{
            WorkerConnecting, WorkerCreated, WorkerDrained, WorkerOffline, WorkerOnline, WorkerRegistered,
            WorkerResumed,
        };
        let log = [
            (1, WorkerCreated),
            (5, WorkerRegistered),
            (5, WorkerOnline),
            (20, WorkerConnecting),
            (22, WorkerOnline),
            (30, WorkerDrained),
            (40, WorkerResumed),
            (50, WorkerOffline),
        ];
        let jobs = [(10, Some(15)), (12, Some(25)), (38, Some(45))];
        let all = "1 Never, 5 Idle, 10 Busy, 25 Idle, 30 Draining, 40 Busy, 45 Idle, 50 Offline";
        assert_eq!(describe_spans(&created(), &log, &jobs, 0), all);
        assert_eq!(
            describe_spans(&created(), &log, &[], 21),
            "20 Connecting, 22 Idle, 30 Draining, 40 Idle, 50 Offline"
        );
        assert_eq!(describe_spans(&created(), &log, &jobs, 99), "50 Offline");
        let retired = Worker { retired_at: Some(Timestamp(45)), ..created() };
        assert_eq!(describe_spans(&retired, &log, &[], 40), "40 Idle, 45 Draining, 50 Offline");
    }

    #[test]
    fn missing_entries_are_replaced_by_the_current_state() {
        let connection = ConnectionState::Online {
            since: Timestamp(3),
            capability: Capability::default(),
            stream: "s/1".to_owned(),
        };
        let online = Worker { connection, ..created() };
        assert_eq!(describe_spans(&created(), &[], &[], 90), "0 Never");
        assert_eq!(describe_spans(&online, &[], &[(95, None)], 90), "3 Idle, 95 Busy");
        let drain = Drain { since: Timestamp(7), reason: None, deadline: None };
        assert_eq!(describe_spans(&Worker { drain: Some(drain), ..online.clone() }, &[], &[], 90), "7 Draining");
        assert_eq!(describe_spans(&online, &[(95, AuditAction::WorkerResumed)], &[], 90), "3 Draining, 95 Idle");
        assert_eq!(
            describe_spans(&online, &[(95, AuditAction::WorkerConnecting)], &[(91, None)], 90),
            "95 Busy",
            "not what was before"
        );
        assert_eq!(
            describe_spans(&online, &[(95, AuditAction::WorkerEdited)], &[], 90),
            "3 Idle",
            "other actions do not matter"
        );
    }

    prop_compose! {
        fn audit_log()(steps in proptest::collection::vec((0_i64..200, 0_usize..7), 0..40)) -> Vec<(Timestamp, AuditAction)> {
            let actions: Vec<AuditAction> = CONNECTION_ACTIONS.into_iter().chain(DRAIN_ACTIONS).collect();
            let mut audit_log: Vec<_> = steps.into_iter().map(|(at, index)| (Timestamp(at), actions[index])).collect();
            audit_log.sort_by_key(|(at, _)| *at);
            audit_log
        }
    }

    proptest! {
        #[test]
        fn spans_are_ordered_and_differ(
            log in audit_log(), held in proptest::collection::vec((0_i64..200, proptest::option::of(0_i64..100)), 0..10),
            since in 0_i64..250,
        ) {
            let held = held
                .into_iter()
                .map(|(from, duration)| (Timestamp(from), duration.map(|duration| Timestamp(from + duration))));
            let spans = status_timeline(&created(), log, held, Timestamp(since));
            prop_assert!(!spans.is_empty());
            prop_assert!(spans.windows(2).all(|pair| pair[0].since < pair[1].since && pair[0].status != pair[1].status));
            prop_assert!(spans.iter().skip(1).all(|span| span.since > Timestamp(since)), "at most one span begins earlier");
        }

        /// Of the entries before the start, only the newest of each kind matters.
        #[test]
        fn newest_earlier_entries_are_sufficient(log in audit_log(), since in 0_i64..200) {
            let since = Timestamp(since);
            let newest = |actions: &[AuditAction]| {
                log.iter().rev().find(|(at, action)| *at < since && actions.contains(action)).copied()
            };
            let before = [newest(&CONNECTION_ACTIONS), newest(&DRAIN_ACTIONS)].into_iter().flatten();
            let later = log.iter().copied().filter(|(at, _)| *at >= since);
            let from_newest = status_timeline(&created(), before.chain(later), [], since);
            let from_all = status_timeline(&created(), log.clone(), [], since);
            let clipped = |spans: &[StatusSpan]| -> Vec<StatusSpan> {
                spans.iter().map(|span| StatusSpan { since: span.since.max(since), ..*span }).collect()
            };
            prop_assert_eq!(clipped(&from_newest), clipped(&from_all));
        }

        /// The last span is the current status.
        #[test]
        fn last_span_is_the_current_status(log in audit_log(), jobs in 0_usize..3) {
            let held = vec![(Timestamp(300), None); jobs];
            let last = status_timeline(&created(), log.clone(), held, Timestamp(0)).pop().expect("a status");
            let connection = log.iter().rev().find_map(|(_, action)| match StatusChange::from_action(*action) {
                Some(StatusChange::Connection(connection)) => Some(connection),
                _ => None,
            });
            let drained = log.iter().rev().find(|(_, action)| DRAIN_ACTIONS.contains(action));
            let drains = drained.is_some_and(|(_, action)| *action == AuditAction::WorkerDrained);
            let connection = connection.unwrap_or(ConnectionStatus::NeverConnected);
            let has_connected = connection != ConnectionStatus::NeverConnected;
            let expected = has_connected.then(|| connection.worker_state(drains, jobs > 0));
            prop_assert_eq!(last.status, expected);
        }
    }
}
