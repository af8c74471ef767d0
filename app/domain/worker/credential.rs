//! What opens the API for a worker's agent: one secret, and for a while after a rotation the one before it.

use core::net::IpAddr;

use super::super::network::Network;
use super::super::time::{Millis, Timestamp};

/// The longest time that two secrets of a worker are good at once.
pub const LONGEST_OVERLAP: Millis = Millis::seconds(604_800);

/// A worker's secrets, as far as they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Credential {
    /// SHA-256 of the newest one, in hex.
    pub digest: String,
    /// When the newest one was made, as far as that was written down.
    pub made_at: Option<Timestamp>,
    /// Who made it, as far as that was written down.
    pub made_by: Option<String>,
    /// When it ends; none for never.
    pub expires_at: Option<Timestamp>,
    /// When it ends if no agent has registered with it by then; none once one has, and where it need not be used.
    pub unused_ends_at: Option<Timestamp>,
    /// The one before, if it was given time.
    pub old: Option<Outgoing>,
    /// The session of the agent that registered last. Older agents have none and use the token for everything.
    pub session: Option<Session>,
}

/// What an agent got for its token when it registered: it opens everything but another registration. It belongs to one process
/// in one work directory, and ends when the next agent registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of its secret, in hex.
    pub digest: String,
    /// The digest of the token that it was got for, with which it ends.
    pub token: String,
}

/// A secret that was replaced and still opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its SHA-256, in hex.
    pub digest: String,
    /// When it ends, if no agent registers with the new one before.
    pub ends_at: Timestamp,
}

/// Why a worker's secret does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It is none of this worker's, or not any more.
    Unknown,
    /// It was made to end, and has.
    Expired,
    /// It comes from a network that this worker is not allowed to come from.
    Elsewhere,
    /// The session has ended: an agent registered after it.
    SessionOver,
}

impl Credential {
    /// One secret without an end.
    pub fn of(digest: impl Into<String>) -> Self {
        Self { digest: digest.into(), ..Self::default() }
    }

    /// One secret without an end, that somebody made.
    pub fn made(digest: impl Into<String>, at: Timestamp, by: &str) -> Self {
        Self { made_at: Some(at), made_by: Some(by.to_owned()), ..Self::of(digest) }
    }

    /// Whether the secret of this digest opens, and until when.
    pub fn opens(&self, digest: &str, now: Timestamp) -> Result<Option<Timestamp>, Closed> {
        if self.digest == digest {
            let end = [self.expires_at, self.unused_ends_at].into_iter().flatten().min();
            return match end {
                Some(end) if end <= now => Err(Closed::Expired),
                end => Ok(end),
            };
        }
        let old = self.old.as_ref().filter(|old| old.digest == digest && now < old.ends_at);
        old.map(|old| Some(old.ends_at)).ok_or(Closed::Unknown)
    }

    /// Whether the session of this digest is the worker's, and its token still opens.
    pub fn session_opens(&self, digest: &str, now: Timestamp) -> Result<Option<Timestamp>, Closed> {
        let session = self.session.as_ref().filter(|session| session.digest == digest);
        self.opens(&session.ok_or(Closed::SessionOver)?.token, now)
    }

    /// An agent registered: the session of the one before ends.
    #[must_use]
    pub fn registered(self, session: Option<Session>) -> Self {
        Self { session, ..self }
    }

    /// Replaced by another. The one until now ends at once, or after `overlap`, but never later than it was made to;
    /// one that was outgoing already ends at once.
    #[must_use]
    pub fn rotated(self, now: Timestamp, to: Self, overlap: Option<Millis>) -> Self {
        let end = |overlap| self.expires_at.map_or(now + overlap, |end| end.min(now + overlap));
        let old = overlap.map(end).filter(|end| *end > now);
        Self { old: old.map(|ends_at| Outgoing { digest: self.digest, ends_at }), session: self.session, ..to }
    }

    /// An agent registered with the secret of this digest: if it is the newest, it is in use, and the one before ends.
    #[must_use]
    pub fn taken_up(self, digest: &str) -> Self {
        if self.digest == digest { Self { old: None, unused_ends_at: None, ..self } } else { self }
    }
}

/// Whether an agent may come from there: from anywhere, if no network is named. Who is nowhere comes from none of them.
pub fn may_come_from(networks: &[Network], peer: Option<IpAddr>) -> Result<(), Closed> {
    let named = |peer| networks.iter().any(|network| network.contains(peer));
    if networks.is_empty() || peer.is_some_and(named) { Ok(()) } else { Err(Closed::Elsewhere) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> Timestamp {
        Timestamp(second * 1_000)
    }

    fn ending(digest: &str, second: i64) -> Credential {
        Credential { expires_at: Some(at(second)), ..Credential::of(digest) }
    }

    #[test]
    fn a_secret_opens_until_it_ends() {
        assert_eq!(Credential::of("a").opens("a", at(9)), Ok(None));
        assert_eq!(Credential::of("a").opens("b", at(9)), Err(Closed::Unknown));
        assert_eq!(ending("a", 10).opens("a", at(9)), Ok(Some(at(10))));
        assert_eq!(ending("a", 10).opens("a", at(10)), Err(Closed::Expired));
    }

    #[test]
    fn a_secret_that_no_agent_uses_ends_and_one_in_use_does_not() {
        let fresh = Credential { unused_ends_at: Some(at(10)), ..Credential::of("a") };
        assert_eq!(fresh.opens("a", at(9)), Ok(Some(at(10))));
        assert_eq!(fresh.opens("a", at(10)), Err(Closed::Expired));
        assert_eq!(fresh.clone().taken_up("b"), fresh);
        assert_eq!(fresh.taken_up("a").opens("a", at(10)), Ok(None));
        let ending = Credential { unused_ends_at: Some(at(20)), ..ending("a", 10) };
        assert_eq!(ending.opens("a", at(9)), Ok(Some(at(10))), "the earlier end counts");
    }

    #[test]
    fn a_rotation_ends_the_old_one_at_once_or_when_it_was_told() {
        let second = Millis::seconds;
        let cases = [
            (Credential::of("a"), None, Err(Closed::Unknown)),
            (Credential::of("a"), Some(second(0)), Err(Closed::Unknown)),
            (Credential::of("a"), Some(second(60)), Ok(Some(at(60)))),
            (ending("a", 20), Some(second(60)), Ok(Some(at(20)))),
            (ending("a", 0), Some(second(60)), Err(Closed::Unknown)),
        ];
        for (before, overlap, expected) in cases {
            let after = before.clone().rotated(at(0), ending("b", 99), overlap);
            assert_eq!(after.opens("a", at(0)), expected, "{before:?} {overlap:?}");
            assert_eq!(after.opens("b", at(0)), Ok(Some(at(99))));
            assert_eq!(after.old.is_some(), expected.is_ok(), "what opens nothing is not kept");
            assert_eq!(after.opens("a", at(60)), Err(Closed::Unknown), "an old one has ended, whatever it was made to");
        }
    }

    fn session(digest: &str, token: &str) -> Session {
        Session { digest: digest.to_owned(), token: token.to_owned() }
    }

    #[test]
    fn a_session_opens_until_the_next_one_or_the_end_of_its_token() {
        let first = ending("a", 10).registered(Some(session("s", "a")));
        assert_eq!(first.session_opens("s", at(9)), Ok(Some(at(10))));
        assert_eq!(first.session_opens("s", at(10)), Err(Closed::Expired));
        assert_eq!(first.session_opens("a", at(9)), Err(Closed::SessionOver), "a token is no session");
        assert_eq!(first.opens("s", at(9)), Err(Closed::Unknown), "a session does not register");

        let next = first.clone().registered(Some(session("t", "a")));
        assert_eq!(next.session_opens("s", at(9)), Err(Closed::SessionOver));
        assert_eq!(first.clone().registered(None).session_opens("s", at(9)), Err(Closed::SessionOver));

        let rotated = first.clone().rotated(at(0), Credential::of("b"), None);
        assert_eq!(rotated.session_opens("s", at(0)), Err(Closed::Unknown));
        let overlapping = first.rotated(at(0), Credential::of("b"), Some(Millis::seconds(5)));
        assert_eq!(overlapping.session_opens("s", at(4)), Ok(Some(at(5))));
        assert_eq!(overlapping.session_opens("s", at(5)), Err(Closed::Unknown));
    }

    #[test]
    fn two_secrets_open_at_most_and_one_once_the_new_one_is_in_use() {
        let overlap = Some(Millis::seconds(60));
        let twice = Credential::of("a").rotated(at(0), Credential::of("b"), overlap).rotated(
            at(1),
            Credential::of("c"),
            overlap,
        );
        let open = |credential: &Credential| ["a", "b", "c"].map(|digest| credential.opens(digest, at(2)).is_ok());
        assert_eq!(open(&twice), [false, true, true]);
        assert_eq!(open(&twice.clone().taken_up("b")), [false, true, true], "the old one is used on");
        assert_eq!(open(&twice.taken_up("c")), [false, false, true]);
    }

    #[test]
    fn where_networks_are_named_nobody_comes_from_elsewhere() {
        let networks: Vec<Network> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("one")).to_vec();
        let from = |text: &str| may_come_from(&networks, text.parse().ok());
        assert_eq!((from("10.1.2.3"), from("2001:db8::5"), from("::ffff:10.1.2.3")), (Ok(()), Ok(()), Ok(())));
        assert_eq!(
            (from("192.0.2.1"), from("2001:db9::5"), from("")),
            (Err(Closed::Elsewhere), Err(Closed::Elsewhere), Err(Closed::Elsewhere))
        );
        assert_eq!(may_come_from(&[], None), Ok(()));
    }
}
