//! Two agents with one token, each of which opens the stream that the other lost.
//!
//! An older agent does not say which work directory it uses, and comes back at once when its stream ends: two of them
//! would take turns for ever, and jobs with them. So a stream goes from host to host only so often a minute.

use super::super::time::{Millis, Timestamp};

/// How long a change of host is remembered.
const WINDOW: Millis = Millis::seconds(60);
/// So many in that time may be one agent that moves; more are two.
const MOST: usize = 3;

/// The recent changes of host of one worker's stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Takeovers(Vec<Timestamp>);

impl Takeovers {
    /// Whether an agent on another host than the one that listens may take its place now.
    ///
    /// Who is refused counts too: it stays outside as long as it tries every few seconds and the other one listens.
    pub fn may_take_over(&mut self, now: Timestamp) -> bool {
        self.0.retain(|at| now - *at < WINDOW);
        self.0.push(now);
        let few = self.0.len() <= MOST;
        if !few {
            self.0.remove(0);
        }
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: i64) -> Timestamp {
        Timestamp(n * 1_000)
    }

    #[test]
    fn one_that_moves_may_and_two_that_fight_may_not() {
        let mut takeovers = Takeovers::default();
        let mut may = |at| takeovers.may_take_over(second(at));
        assert!(may(0) && may(1) && may(2));
        assert!(!may(3) && !may(13), "the fourth within a minute");
        assert!((2..9).all(|n| !may(n * 10 + 3)), "and as long as it goes on trying");
        assert!(may(143), "a minute after the last but two");
    }

    #[test]
    fn moves_that_are_far_apart_are_nothing() {
        let mut takeovers = Takeovers::default();
        assert!((0..20).all(|n| takeovers.may_take_over(second(n * 20))));
    }
}
