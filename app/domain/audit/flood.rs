//! What strangers are refused goes on record, but a flood of it must not fill the disk: the first of each is recorded,
//! then a few a minute, with the number of those that were left out in between.

use std::collections::BTreeMap;

use super::super::time::{Millis, Timestamp};
use super::Action;

const WINDOW: Millis = Millis::seconds(60);
/// So many of one peer are recorded in that time,
const MOST_OF_ONE: usize = 3;
/// and so many of all: addresses cost a stranger little.
const MOST: usize = 30;
/// So many peers are told apart.
const MOST_PEERS: usize = 1_000;

/// What is refused to strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// A registration.
    Registration,
    /// A token that another agent is using.
    TokenInUse,
    /// A login.
    Login,
    /// A request of somebody who is nobody, or may not do that.
    Access,
}

impl Refused {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Registration, Self::TokenInUse, Self::Login, Self::Access];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::TokenInUse => "token_in_use",
            Self::Login => "login",
            Self::Access => "access",
        }
    }

    /// What the trail says of it.
    pub const fn action(self) -> Action {
        match self {
            Self::Registration => Action::WorkerRegistrationRefused,
            Self::TokenInUse => Action::WorkerTokenInUse,
            Self::Login => Action::LoginRefused,
            Self::Access => Action::AccessDenied,
        }
    }
}

/// What was refused lately, of one kind. `P` tells peers apart.
#[derive(Debug, Clone)]
pub struct Flood<P> {
    peers: BTreeMap<P, Tally>,
    recorded: Recent,
    /// What was refused to peers that there was no room for.
    crowd: u64,
}

/// Of one peer.
#[derive(Debug, Clone, Default)]
struct Tally {
    recorded: Recent,
    newest: Timestamp,
    left_out: u64,
}

#[derive(Debug, Clone, Default)]
struct Recent(Vec<Timestamp>);

impl Recent {
    fn number(&mut self, now: Timestamp) -> usize {
        self.0.retain(|at| now - *at < WINDOW);
        self.0.len()
    }
}

/// What was left out of the record, and will not be told with the next of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// How often somebody was refused.
    pub times: u64,
    /// How many peers that were, as far as they are told apart.
    pub peers: u64,
}

impl<P> Default for Flood<P> {
    fn default() -> Self {
        Self { peers: BTreeMap::new(), recorded: Recent::default(), crowd: 0 }
    }
}

impl<P: Ord> Flood<P> {
    /// A peer was refused. If that is to be recorded: how often it was left out for this peer since the last time.
    pub fn another(&mut self, peer: P, now: Timestamp) -> Option<u64> {
        if self.peers.len() >= MOST_PEERS && !self.peers.contains_key(&peer) {
            self.crowd += 1;
            return None;
        }
        let tally = self.peers.entry(peer).or_default();
        tally.newest = now;
        if tally.recorded.number(now) >= MOST_OF_ONE || self.recorded.number(now) >= MOST {
            tally.left_out += 1;
            return None;
        }
        tally.recorded.0.push(now);
        self.recorded.0.push(now);
        Some(std::mem::take(&mut tally.left_out))
    }

    /// Forgets peers that have been quiet for a while; returns what of them was left out.
    pub fn settle(&mut self, now: Timestamp) -> Option<LeftOut> {
        let mut left_out = LeftOut { times: std::mem::take(&mut self.crowd), peers: 0 };
        self.peers.retain(|_, tally| {
            let lately = now - tally.newest < WINDOW;
            if !lately && tally.left_out > 0 {
                left_out.times += tally.left_out;
                left_out.peers += 1;
            }
            lately
        });
        (left_out.times > 0).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: i64) -> Timestamp {
        Timestamp(n * 1_000)
    }

    #[test]
    fn each_kind_has_a_word_of_its_own() {
        assert_eq!(Refused::ALL.map(Refused::as_str), ["registration", "token_in_use", "login", "access"]);
    }

    #[test]
    fn the_first_ones_are_recorded_and_then_a_few_a_minute() {
        let mut flood = Flood::default();
        let recorded: Vec<_> = (0..600).filter_map(|n| flood.another("a", second(n / 5))).collect();
        assert_eq!(recorded, [0, 0, 0, 297, 0, 0], "two minutes of five a second");
        assert_eq!(flood.another("b", second(119)), Some(0), "another peer is another matter");
        assert_eq!(flood.another("a", second(300)), Some(297));
    }

    #[test]
    fn many_peers_together_have_a_limit_too() {
        let mut flood = Flood::default();
        let recorded = (0..5_000).filter(|peer| flood.another(*peer, second(1)).is_some()).count();
        assert_eq!((recorded, flood.peers.len()), (30, 1_000));
        assert_eq!(flood.settle(second(60)), Some(LeftOut { times: 4_000, peers: 0 }), "they are told once");
        assert_eq!(flood.settle(second(61)), Some(LeftOut { times: 970, peers: 970 }));
        assert_eq!((flood.settle(second(62)), flood.peers.len()), (None, 0));
    }

    #[test]
    fn what_was_left_out_at_the_end_is_told_when_it_is_quiet() {
        let mut flood = Flood::default();
        assert_eq!((0..5).filter_map(|n| flood.another("a", second(n))).count(), 3);
        assert_eq!(flood.settle(second(30)), None);
        assert_eq!(flood.settle(second(64)), Some(LeftOut { times: 2, peers: 1 }));
        assert_eq!(flood.another("a", second(65)), Some(0));
    }

    #[test]
    fn each_kind_has_its_word() {
        let kinds = [Refused::Registration, Refused::TokenInUse, Refused::Login, Refused::Access];
        let words: std::collections::BTreeSet<_> = kinds.iter().map(|kind| kind.action().as_str()).collect();
        assert_eq!(words.len(), kinds.len());
    }
}
