//! When to try again: windows of 1 s doubling to 32 s, with the try at a random place in each window.
//!
//! After a try the rest of its window is waited out before the next one opens. Fresh full jitter for each try would add
//! up to a bell curve, which brings a fleet back into step after an outage.

use std::time::Duration;

const FIRST_MS: u64 = 1_000;
/// The rest of one window and the whole of the next are a minute together.
const LAST_MS: u64 = 32_000;
/// More than this is not waited on a server's word.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(5);

/// The windows of one series of tries.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    window_ms: u64,
    rest_ms: u64,
}

impl Backoff {
    /// How long to wait now; `roll` is a random number.
    pub fn next(&mut self, roll: u64) -> Duration {
        self.window_ms = if self.window_ms == 0 { FIRST_MS } else { (self.window_ms * 2).min(LAST_MS) };
        let into = roll % (self.window_ms + 1);
        let wait = self.rest_ms + into;
        self.rest_ms = self.window_ms - into;
        Duration::from_millis(wait)
    }

    /// Like [`Self::next`], but not before the server wants it.
    pub fn next_after(&mut self, roll: u64, retry_after: Option<Duration>) -> Duration {
        let own = self.next(roll);
        retry_after.map_or(own, |asked| own.max(asked.min(LONGEST_RETRY_AFTER)))
    }

    /// After a success: starts again with the first window.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_and_stay_whole() {
        let mut early = Backoff::default();
        let mut late = Backoff::default();
        // A try at the start of its window is followed by the whole of it; one at the end by nothing.
        let early: Vec<u64> = (0..9).map(|_| early.next(0).as_secs()).collect();
        assert_eq!(early, [0, 1, 2, 4, 8, 16, 32, 32, 32]);
        let late: Vec<u64> = [1_000, 2_000, 4_000, 8_000].iter().map(|roll| late.next(*roll).as_secs()).collect();
        assert_eq!(late, [1, 2, 4, 8]);
    }

    #[test]
    fn the_servers_wish_counts_within_reason() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next_after(0, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(backoff.next_after(0, Some(Duration::from_secs(99_999))), LONGEST_RETRY_AFTER);
        backoff.reset();
        assert_eq!(backoff.next_after(500, None), Duration::from_millis(500));
    }
}
