//! Worker tokens: one current token, and for a while after a rotation the previous one.

use core::net::IpAddr;

use super::super::network::Network;
use super::super::time::{Millis, Timestamp};

/// Maximum time for which two tokens of a worker are valid at the same time.
pub const MAX_OVERLAP: Millis = Millis::from_secs(604_800);

/// The stored credentials of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerCredential {
    /// SHA-256 of the current token, in hex.
    pub digest: String,
    /// When the current token was created; none if not recorded.
    pub issued_at: Option<Timestamp>,
    /// Who created it; none if not recorded.
    pub issued_by: Option<String>,
    /// When it expires; none for never.
    pub expires_at: Option<Timestamp>,
    /// When it expires if no agent registers with it before; none once one has, and if this does not apply.
    pub expires_unused_at: Option<Timestamp>,
    /// The previous token, if the rotation has an overlap.
    pub previous: Option<PreviousSecret>,
    /// The session of the agent that registered last. Older agents have none and use the token for all requests.
    pub session: Option<WorkerSession>,
}

/// The session of an agent, created at its registration: it authenticates everything except another registration. It
/// belongs to one process in one work directory, and ends when the next agent registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSession {
    /// SHA-256 of its secret, in hex.
    pub digest: String,
    /// Digest of the token that created the session; the session ends with it.
    pub token_digest: String,
}

/// A replaced token that is still valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousSecret {
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// When it expires, if no agent registers with the new token before.
    pub expires_at: Timestamp,
}

/// Why a worker's token or session is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRejection {
    /// It does not belong to this worker, or no longer does.
    Unknown,
    /// It has expired.
    Expired,
    /// The request comes from a network that is not allowed for this worker.
    NetworkNotAllowed,
    /// The session has ended because another agent registered.
    SessionEnded,
}

impl WorkerCredential {
    /// Creates credentials with one token that does not expire.
    pub fn new(digest: impl Into<String>) -> Self {
        Self { digest: digest.into(), ..Self::default() }
    }

    /// Creates credentials with one token that does not expire, and records who created it.
    pub fn issued(digest: impl Into<String>, at: Timestamp, by: &str) -> Self {
        Self { issued_at: Some(at), issued_by: Some(by.to_owned()), ..Self::new(digest) }
    }

    /// Verifies the token with this digest, and returns when it expires.
    pub fn verify(&self, digest: &str, now: Timestamp) -> Result<Option<Timestamp>, TokenRejection> {
        if self.digest == digest {
            let end = [self.expires_at, self.expires_unused_at].into_iter().flatten().min();
            return match end {
                Some(end) if end <= now => Err(TokenRejection::Expired),
                end => Ok(end),
            };
        }
        let old = self.previous.as_ref().filter(|old| old.digest == digest && now < old.expires_at);
        old.map(|old| Some(old.expires_at)).ok_or(TokenRejection::Unknown)
    }

    /// Verifies the session with this digest and its token, and returns when it expires.
    pub fn verify_session(&self, digest: &str, now: Timestamp) -> Result<Option<Timestamp>, TokenRejection> {
        let session = self.session.as_ref().filter(|session| session.digest == digest);
        self.verify(&session.ok_or(TokenRejection::SessionEnded)?.token_digest, now)
    }

    /// Sets the session of a newly registered agent, which ends the previous one.
    #[must_use]
    pub fn with_session(self, session: Option<WorkerSession>) -> Self {
        Self { session, ..self }
    }

    /// Replaces the token. The current one becomes invalid immediately, or after `overlap`, but not later than its own
    /// expiry; an older previous token becomes invalid immediately.
    #[must_use]
    pub fn rotated(self, now: Timestamp, replacement: Self, overlap: Option<Millis>) -> Self {
        let end = |overlap| self.expires_at.map_or(now + overlap, |end| end.min(now + overlap));
        let old = overlap.map(end).filter(|end| *end > now);
        Self {
            previous: old.map(|ends_at| PreviousSecret { digest: self.digest, expires_at: ends_at }),
            session: self.session,
            ..replacement
        }
    }

    /// Records that an agent registered with the token of this digest: if it is the current token, it is in use now,
    /// and the previous one becomes invalid.
    #[must_use]
    pub fn activated(self, digest: &str) -> Self {
        if self.digest == digest { Self { previous: None, expires_unused_at: None, ..self } } else { self }
    }
}

/// Checks the network of an agent. Without a list, any network is allowed; with a list, an unknown address is rejected.
pub fn check_network(networks: &[Network], peer: Option<IpAddr>) -> Result<(), TokenRejection> {
    let is_allowed = |peer| networks.iter().any(|network| network.contains(peer));
    if networks.is_empty() || peer.is_some_and(is_allowed) { Ok(()) } else { Err(TokenRejection::NetworkNotAllowed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> Timestamp {
        Timestamp(second * 1_000)
    }

    fn ending(digest: &str, second: i64) -> WorkerCredential {
        WorkerCredential { expires_at: Some(at(second)), ..WorkerCredential::new(digest) }
    }

    #[test]
    fn token_is_valid_until_it_expires() {
        assert_eq!(WorkerCredential::new("a").verify("a", at(9)), Ok(None));
        assert_eq!(WorkerCredential::new("a").verify("b", at(9)), Err(TokenRejection::Unknown));
        assert_eq!(ending("a", 10).verify("a", at(9)), Ok(Some(at(10))));
        assert_eq!(ending("a", 10).verify("a", at(10)), Err(TokenRejection::Expired));
    }

    #[test]
    fn unused_token_expires_and_used_token_does_not() {
        let unused = WorkerCredential { expires_unused_at: Some(at(10)), ..WorkerCredential::new("a") };
        assert_eq!(unused.verify("a", at(9)), Ok(Some(at(10))));
        assert_eq!(unused.verify("a", at(10)), Err(TokenRejection::Expired));
        assert_eq!(unused.clone().activated("b"), unused);
        assert_eq!(unused.activated("a").verify("a", at(10)), Ok(None));
        let ending = WorkerCredential { expires_unused_at: Some(at(20)), ..ending("a", 10) };
        assert_eq!(ending.verify("a", at(9)), Ok(Some(at(10))), "the earlier expiry counts");
    }

    #[test]
    fn rotation_ends_the_old_token_immediately_or_after_the_overlap() {
        let second = Millis::from_secs;
        let cases = [
            (WorkerCredential::new("a"), None, Err(TokenRejection::Unknown)),
            (WorkerCredential::new("a"), Some(second(0)), Err(TokenRejection::Unknown)),
            (WorkerCredential::new("a"), Some(second(60)), Ok(Some(at(60)))),
            (ending("a", 20), Some(second(60)), Ok(Some(at(20)))),
            (ending("a", 0), Some(second(60)), Err(TokenRejection::Unknown)),
        ];
        for (before, overlap, expected) in cases {
            let after = before.clone().rotated(at(0), ending("b", 99), overlap);
            assert_eq!(after.verify("a", at(0)), expected, "{before:?} {overlap:?}");
            assert_eq!(after.verify("b", at(0)), Ok(Some(at(99))));
            assert_eq!(after.previous.is_some(), expected.is_ok(), "an invalid token is not stored");
            assert_eq!(after.verify("a", at(60)), Err(TokenRejection::Unknown), "the old token has expired by now");
        }
    }

    fn session(digest: &str, token: &str) -> WorkerSession {
        WorkerSession { digest: digest.to_owned(), token_digest: token.to_owned() }
    }

    #[test]
    fn session_is_valid_until_the_next_or_its_tokens_expiry() {
        let first = ending("a", 10).with_session(Some(session("s", "a")));
        assert_eq!(first.verify_session("s", at(9)), Ok(Some(at(10))));
        assert_eq!(first.verify_session("s", at(10)), Err(TokenRejection::Expired));
        assert_eq!(first.verify_session("a", at(9)), Err(TokenRejection::SessionEnded), "a token is not a session");
        assert_eq!(first.verify("s", at(9)), Err(TokenRejection::Unknown), "a session does not register");

        let next = first.clone().with_session(Some(session("t", "a")));
        assert_eq!(next.verify_session("s", at(9)), Err(TokenRejection::SessionEnded));
        assert_eq!(first.clone().with_session(None).verify_session("s", at(9)), Err(TokenRejection::SessionEnded));

        let rotated = first.clone().rotated(at(0), WorkerCredential::new("b"), None);
        assert_eq!(rotated.verify_session("s", at(0)), Err(TokenRejection::Unknown));
        let overlapping = first.rotated(at(0), WorkerCredential::new("b"), Some(Millis::from_secs(5)));
        assert_eq!(overlapping.verify_session("s", at(4)), Ok(Some(at(5))));
        assert_eq!(overlapping.verify_session("s", at(5)), Err(TokenRejection::Unknown));
    }

    #[test]
    fn at_most_two_tokens_are_valid_and_one_after_activation() {
        let overlap = Some(Millis::from_secs(60));
        let rotated_twice = WorkerCredential::new("a").rotated(at(0), WorkerCredential::new("b"), overlap).rotated(
            at(1),
            WorkerCredential::new("c"),
            overlap,
        );
        let valid_tokens =
            |credential: &WorkerCredential| ["a", "b", "c"].map(|digest| credential.verify(digest, at(2)).is_ok());
        assert_eq!(valid_tokens(&rotated_twice), [false, true, true]);
        assert_eq!(
            valid_tokens(&rotated_twice.clone().activated("b")),
            [false, true, true],
            "the old token is still used"
        );
        assert_eq!(valid_tokens(&rotated_twice.activated("c")), [false, false, true]);
    }

    #[test]
    fn other_networks_are_rejected() {
        let networks: Vec<Network> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("one")).to_vec();
        let from = |text: &str| check_network(&networks, text.parse().ok());
        assert_eq!((from("10.1.2.3"), from("2001:db8::5"), from("::ffff:10.1.2.3")), (Ok(()), Ok(()), Ok(())));
        assert_eq!(
            (from("192.0.2.1"), from("2001:db9::5"), from("")),
            (
                Err(TokenRejection::NetworkNotAllowed),
                Err(TokenRejection::NetworkNotAllowed),
                Err(TokenRejection::NetworkNotAllowed)
            )
        );
        assert_eq!(check_network(&[], None), Ok(()));
    }
}
