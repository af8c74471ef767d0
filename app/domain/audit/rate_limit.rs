//! Rate limit for audit entries about rejected requests, so that a flood of them does not fill the disk: the first ones
//! of each client are recorded, then a few per minute, with the number of suppressed ones.

use std::collections::BTreeMap;

use super::super::time::{Millis, Timestamp};
use super::AuditAction;

const WINDOW: Millis = Millis::from_secs(60);
/// Maximum number of entries per client and window.
const MAX_PER_PEER: usize = 3;
/// Maximum number of entries of all clients per window, because an attacker can use many addresses.
const MAX_RECORDED: usize = 30;
/// Maximum number of clients that are distinguished.
const MAX_PEERS: usize = 1_000;

/// The kind of a rejected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RejectionKind {
    /// A registration.
    Registration,
    /// A token that another agent is using.
    TokenInUse,
    /// A sign-in.
    Login,
    /// A request that was not authenticated or not permitted.
    AccessDenied,
}

impl RejectionKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Registration, Self::TokenInUse, Self::Login, Self::AccessDenied];

    /// Returns the name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::TokenInUse => "token_in_use",
            Self::Login => "login",
            Self::AccessDenied => "access",
        }
    }

    /// Returns the audit action.
    pub const fn action(self) -> AuditAction {
        match self {
            Self::Registration => AuditAction::WorkerRegistrationRejected,
            Self::TokenInUse => AuditAction::WorkerTokenInUse,
            Self::Login => AuditAction::LoginFailed,
            Self::AccessDenied => AuditAction::AccessDenied,
        }
    }
}

/// Recent rejected requests of one kind. `P` identifies a client.
#[derive(Debug, Clone)]
pub struct RejectionLimiter<P> {
    peers: BTreeMap<P, PeerTally>,
    recorded: RecentTimes,
    /// Number of rejected requests of clients beyond the maximum.
    overflow: u64,
}

/// The state of one client.
#[derive(Debug, Clone, Default)]
struct PeerTally {
    recorded: RecentTimes,
    last_rejected: Timestamp,
    suppressed: u64,
}

#[derive(Debug, Clone, Default)]
struct RecentTimes(Vec<Timestamp>);

impl RecentTimes {
    fn count_recent(&mut self, now: Timestamp) -> usize {
        self.0.retain(|at| now - *at < WINDOW);
        self.0.len()
    }
}

/// Rejected requests that were not recorded and will not be counted in a later entry of their client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuppressedRejections {
    /// Number of rejected requests.
    pub count: u64,
    /// Number of their clients, as far as they are distinguished.
    pub peers: u64,
}

impl<P> Default for RejectionLimiter<P> {
    fn default() -> Self {
        Self { peers: BTreeMap::new(), recorded: RecentTimes::default(), overflow: 0 }
    }
}

impl<P: Ord> RejectionLimiter<P> {
    /// Counts a rejected request. If it must be recorded, returns how many of this client were suppressed since the
    /// last entry.
    pub fn record_rejection(&mut self, peer: P, now: Timestamp) -> Option<u64> {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&peer) {
            self.overflow += 1;
            return None;
        }
        let tally = self.peers.entry(peer).or_default();
        tally.last_rejected = now;
        if tally.recorded.count_recent(now) >= MAX_PER_PEER || self.recorded.count_recent(now) >= MAX_RECORDED {
            tally.suppressed += 1;
            return None;
        }
        tally.recorded.0.push(now);
        self.recorded.0.push(now);
        Some(std::mem::take(&mut tally.suppressed))
    }

    /// Removes clients without recent rejections, and returns what was suppressed for them.
    pub fn prune(&mut self, now: Timestamp) -> Option<SuppressedRejections> {
        let mut unreported = SuppressedRejections { count: std::mem::take(&mut self.overflow), peers: 0 };
        self.peers.retain(|_, tally| {
            let is_recent = now - tally.last_rejected < WINDOW;
            if !is_recent && tally.suppressed > 0 {
                unreported.count += tally.suppressed;
                unreported.peers += 1;
            }
            is_recent
        });
        (unreported.count > 0).then_some(unreported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: i64) -> Timestamp {
        Timestamp(n * 1_000)
    }

    #[test]
    fn each_kind_has_a_unique_name() {
        assert_eq!(RejectionKind::ALL.map(RejectionKind::as_str), ["registration", "token_in_use", "login", "access"]);
    }

    #[test]
    fn first_rejections_are_recorded_then_a_few_per_minute() {
        let mut flood = RejectionLimiter::default();
        let recorded: Vec<_> = (0..600).filter_map(|n| flood.record_rejection("a", second(n / 5))).collect();
        assert_eq!(recorded, [0, 0, 0, 297, 0, 0], "two minutes at five per second");
        assert_eq!(flood.record_rejection("b", second(119)), Some(0), "clients are independent");
        assert_eq!(flood.record_rejection("a", second(300)), Some(297));
    }

    #[test]
    fn all_clients_together_have_a_limit() {
        let mut flood = RejectionLimiter::default();
        let recorded = (0..5_000).filter(|peer| flood.record_rejection(*peer, second(1)).is_some()).count();
        assert_eq!((recorded, flood.peers.len()), (30, 1_000));
        assert_eq!(
            flood.prune(second(60)),
            Some(SuppressedRejections { count: 4_000, peers: 0 }),
            "they are reported once"
        );
        assert_eq!(flood.prune(second(61)), Some(SuppressedRejections { count: 970, peers: 970 }));
        assert_eq!((flood.prune(second(62)), flood.peers.len()), (None, 0));
    }

    #[test]
    fn suppressed_rejections_are_reported_after_the_flood() {
        let mut flood = RejectionLimiter::default();
        assert_eq!((0..5).filter_map(|n| flood.record_rejection("a", second(n))).count(), 3);
        assert_eq!(flood.prune(second(30)), None);
        assert_eq!(flood.prune(second(64)), Some(SuppressedRejections { count: 2, peers: 1 }));
        assert_eq!(flood.record_rejection("a", second(65)), Some(0));
    }

    #[test]
    fn each_kind_has_its_action() {
        let kinds =
            [RejectionKind::Registration, RejectionKind::TokenInUse, RejectionKind::Login, RejectionKind::AccessDenied];
        let words: std::collections::BTreeSet<_> = kinds.iter().map(|kind| kind.action().as_str()).collect();
        assert_eq!(words.len(), kinds.len());
    }
}
