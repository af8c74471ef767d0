//! When a lost attempt is tried again.

use super::time::{Millis, Timestamp};

/// The first wait after a loss; each further loss doubles it.
const FIRST: Millis = Millis::seconds(10);
/// The longest wait.
const LONGEST: Millis = Millis::seconds(300);

/// What becomes of a job whose attempt was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It waits again, and is offered from this moment on.
    NotBefore(Timestamp),
    /// Its retries are used up.
    Exhausted,
}

/// Decides after the `losses`-th loss (from 1) of a job that may be retried `max_retries` times.
pub fn after_loss(now: Timestamp, losses: u32, max_retries: u32) -> Retry {
    if losses > max_retries {
        return Retry::Exhausted;
    }
    let doublings = losses.saturating_sub(1).min(16);
    let wait = FIRST.0.saturating_mul(1 << doublings).min(LONGEST.0);
    Retry::NotBefore(now + Millis(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_from_ten_seconds_to_five_minutes() {
        let waits = [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (40, 300)];
        for (losses, seconds) in waits {
            assert_eq!(after_loss(Timestamp(7), losses, 99), Retry::NotBefore(Timestamp(7 + seconds * 1_000)));
        }
    }

    #[test]
    fn three_retries_are_four_attempts() {
        assert!(matches!(after_loss(Timestamp(0), 3, 3), Retry::NotBefore(_)));
        assert_eq!(after_loss(Timestamp(0), 4, 3), Retry::Exhausted);
        assert_eq!(after_loss(Timestamp(0), 1, 0), Retry::Exhausted);
    }
}
