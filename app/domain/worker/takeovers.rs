//! Detects two agents with one token that repeatedly replace each other's stream.
//!
//! An older agent does not report its work directory and reconnects immediately when its stream ends: two of them would
//! alternate forever, together with their jobs. Therefore a stream can move between hosts only a few times per minute.

use super::super::time::{Millis, Timestamp};

/// How long a change of host is remembered.
const WINDOW: Millis = Millis::from_secs(60);
/// Up to this number of changes may be one agent that moves; more are two agents.
const MAX_TAKEOVERS: usize = 3;

/// Recent changes of the host of one worker's stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamTakeovers(Vec<Timestamp>);

impl StreamTakeovers {
    /// Returns whether an agent on another host may replace the current stream now.
    ///
    /// Rejected attempts count too: an agent stays rejected while it retries every few seconds and the other one is
    /// connected.
    pub fn try_take_over(&mut self, now: Timestamp) -> bool {
        self.0.retain(|at| now - *at < WINDOW);
        self.0.push(now);
        let is_allowed = self.0.len() <= MAX_TAKEOVERS;
        if !is_allowed {
            self.0.remove(0);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: i64) -> Timestamp {
        Timestamp(n * 1_000)
    }

    #[test]
    fn moving_agent_is_allowed_and_two_agents_are_not() {
        let mut takeovers = StreamTakeovers::default();
        let mut is_allowed = |at| takeovers.try_take_over(second(at));
        assert!(is_allowed(0) && is_allowed(1) && is_allowed(2));
        assert!(!is_allowed(3) && !is_allowed(13), "the fourth within a minute");
        assert!((2..9).all(|n| !is_allowed(n * 10 + 3)), "and while it retries");
        assert!(is_allowed(143), "one minute after the third-last change");
    }

    #[test]
    fn rare_moves_are_allowed() {
        let mut takeovers = StreamTakeovers::default();
        assert!((0..20).all(|n| takeovers.try_take_over(second(n * 20))));
    }
}
