//! Back-off after lost attempts.

use super::time::{Millis, Timestamp};

/// The delay after the first loss; it doubles with each further loss.
const FIRST_DELAY: Millis = Millis::from_secs(10);
/// The maximum delay.
const MAX_DELAY: Millis = Millis::from_secs(300);

/// What happens to a job after a lost attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// It is requeued, and can be offered from this time on.
    RetryAt(Timestamp),
    /// All retries are used up.
    Exhausted,
}

/// Decides after the `losses`-th loss (from 1) of a job with up to `max_retries` retries.
pub fn after_loss(now: Timestamp, losses: u32, max_retries: u32) -> RetryDecision {
    if losses > max_retries {
        return RetryDecision::Exhausted;
    }
    let doublings = losses.saturating_sub(1).min(16);
    let wait = FIRST_DELAY.0.saturating_mul(1 << doublings).min(MAX_DELAY.0);
    RetryDecision::RetryAt(now + Millis(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_from_10_s_to_300_s() {
        let waits = [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (40, 300)];
        for (losses, seconds) in waits {
            assert_eq!(after_loss(Timestamp(7), losses, 99), RetryDecision::RetryAt(Timestamp(7 + seconds * 1_000)));
        }
    }

    #[test]
    fn three_retries_are_four_attempts() {
        assert!(matches!(after_loss(Timestamp(0), 3, 3), RetryDecision::RetryAt(_)));
        assert_eq!(after_loss(Timestamp(0), 4, 3), RetryDecision::Exhausted);
        assert_eq!(after_loss(Timestamp(0), 1, 0), RetryDecision::Exhausted);
    }
}
