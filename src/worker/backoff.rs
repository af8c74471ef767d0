//! Retry delays: windows of 1 s doubling to 32 s, with a retry at a random time in each window.
//!
//! After a retry the rest of its window passes before the next one opens. Independent full jitter for each retry would
//! add up to a bell curve, which synchronizes a fleet again after an outage.

use std::time::Duration;

const MIN_WINDOW_MS: u64 = 1_000;
/// The rest of one window and the whole next one are at most a minute.
const MAX_WINDOW_MS: u64 = 32_000;
/// Maximum delay that a server can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// The delays of one series of retries.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    window_ms: u64,
    remaining_ms: u64,
}

impl Backoff {
    /// The next delay; `roll` is a random number.
    pub fn next_delay(&mut self, roll: u64) -> Duration {
        self.window_ms = if self.window_ms == 0 { MIN_WINDOW_MS } else { (self.window_ms * 2).min(MAX_WINDOW_MS) };
        let offset_ms = roll % (self.window_ms + 1);
        let delay_ms = self.remaining_ms + offset_ms;
        self.remaining_ms = self.window_ms - offset_ms;
        Duration::from_millis(delay_ms)
    }

    /// Like [`Self::next_delay`], but at least what the server asks for.
    pub fn next_delay_after(&mut self, roll: u64, retry_after: Option<Duration>) -> Duration {
        let delay = self.next_delay(roll);
        retry_after.map_or(delay, |requested| delay.max(requested.min(MAX_RETRY_AFTER)))
    }

    /// Starts again with the first window, after a success.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_windows_double_and_pass_completely() {
        let mut early = Backoff::default();
        let mut late = Backoff::default();
        // A retry at the start of its window is followed by all of it, one at the end by nothing.
        let early: Vec<u64> = (0..9).map(|_| early.next_delay(0).as_secs()).collect();
        assert_eq!(early, [0, 1, 2, 4, 8, 16, 32, 32, 32]);
        let late: Vec<u64> = [1_000, 2_000, 4_000, 8_000].iter().map(|roll| late.next_delay(*roll).as_secs()).collect();
        assert_eq!(late, [1, 2, 4, 8]);
    }

    #[test]
    fn retry_after_is_honored_up_to_the_maximum() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next_delay_after(0, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(backoff.next_delay_after(0, Some(Duration::from_secs(99_999))), MAX_RETRY_AFTER);
        backoff.reset();
        assert_eq!(backoff.next_delay_after(500, None), Duration::from_millis(500));
    }
}
