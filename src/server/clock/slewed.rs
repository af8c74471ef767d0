//! A slewed clock: the machine's clock without jumps, because a server's decisions depend on elapsed time.
//!
//! Clocks are set while servers run, by minutes or by years. A server that followed such a jump would mark every worker
//! as silent, stop jobs too early, or reject users until the time of their last request has come again. This clock uses
//! elapsed time, and follows the machine's clock, or another reference, slowly.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use app::domain::time::{Millis, Timestamp};
use nix::time::{ClockId, clock_gettime};

use super::{Clock, SystemClock};

/// It corrects this fraction of the elapsed time: a tenth.
const SLEW_DIVISOR: i64 = 10;
/// The interval between corrections, in ms. A longer one would allow corrections of more than a millisecond at once,
/// and so the clock could go back.
const POLL_INTERVAL_MS: i64 = SLEW_DIVISOR;
/// A larger offset means that the clock was never set before (a machine that starts in 1970), and is corrected
/// immediately.
pub const MAX_SLEW: Millis = Millis::from_secs(3_600);
/// No other clock is followed.
const NO_REFERENCE: i64 = i64::MIN;
/// Shorter sleeps are not detected, in ms.
const MIN_SLEEP_MS: i64 = 1_000;

#[derive(Debug)]
pub struct SlewedClock {
    /// Reads the machine's clocks.
    read: fn() -> ClockReadings,
    /// This clock minus the machine's uptime.
    offset: AtomicI64,
    /// The followed clock minus the machine's uptime.
    reference_offset: AtomicI64,
    /// The last reading, in uptime.
    polled_at: AtomicI64,
    /// Held during a reading.
    poll_lock: Mutex<()>,
    /// How long the machine has been suspended.
    suspended: AtomicI64,
    /// The time of the last interruption.
    continuous_since: AtomicI64,
}

/// Readings of the machine's clocks, in ms.
#[derive(Debug, Clone, Copy)]
pub struct ClockReadings {
    /// Since 1970; it may be set.
    pub wall: i64,
    /// Since the machine was started.
    pub uptime: i64,
    /// Uptime without sleep.
    pub awake: i64,
}

impl ClockReadings {
    fn read() -> Self {
        let since_start = |id| clock_gettime(id).map_or(0, |time| millis(Duration::from(time)));
        let awake = since_start(ClockId::CLOCK_MONOTONIC);
        Self { wall: SystemClock.now().0, uptime: since_start(ClockId::CLOCK_BOOTTIME).max(awake), awake }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl SlewedClock {
    /// Starts with the machine's clock.
    pub fn new() -> Self {
        Self::with_source(ClockReadings::read)
    }

    /// Starts with the clocks that a function reads.
    pub fn with_source(read: fn() -> ClockReadings) -> Self {
        Self { read, ..Self::from_readings(read()) }
    }

    fn from_readings(clocks: ClockReadings) -> Self {
        Self {
            read: ClockReadings::read,
            offset: AtomicI64::new(clocks.wall - clocks.uptime),
            reference_offset: AtomicI64::new(NO_REFERENCE),
            polled_at: AtomicI64::new(clocks.uptime),
            poll_lock: Mutex::default(),
            suspended: AtomicI64::new(clocks.uptime - clocks.awake),
            continuous_since: AtomicI64::new(clocks.wall),
        }
    }

    fn time_at(&self, clocks: ClockReadings) -> Timestamp {
        let elapsed = || clocks.uptime - self.polled_at.load(Ordering::Acquire);
        // Only one of several concurrent callers reads the clocks.
        if elapsed() >= POLL_INTERVAL_MS
            && let Ok(_lock) = self.poll_lock.try_lock()
            && elapsed() >= POLL_INTERVAL_MS
        {
            self.poll(clocks, elapsed());
            self.polled_at.store(clocks.uptime, Ordering::Release);
        }
        Timestamp(clocks.uptime + self.offset.load(Ordering::Acquire))
    }

    fn poll(&self, clocks: ClockReadings, elapsed: i64) {
        let suspended = clocks.uptime - clocks.awake;
        let suspended_ms = suspended - self.suspended.swap(suspended, Ordering::AcqRel);
        let offset = self.offset.load(Ordering::Acquire);
        let target_offset = match self.reference_offset.load(Ordering::Acquire) {
            NO_REFERENCE => clocks.wall - clocks.uptime,
            reference_offset => reference_offset,
        };
        let ahead = target_offset - offset;
        let jumps = ahead.abs() > MAX_SLEW.0;
        let step = if jumps { ahead } else { ahead.clamp(-elapsed / SLEW_DIVISOR, elapsed / SLEW_DIVISOR) };
        self.offset.fetch_add(step, Ordering::AcqRel);
        if jumps || suspended_ms > MIN_SLEEP_MS {
            tracing::warn!(
                seconds = if jumps { ahead } else { suspended_ms } / 1_000,
                "clock: the clock was set, or the machine was suspended"
            );
            self.continuous_since.store(clocks.uptime + offset + step, Ordering::Release);
        }
    }

    /// The first time, sets the clock at once: this machine's clock may be wrong by any amount.
    fn follow_at(&self, clocks: ClockReadings, ahead: Millis) -> bool {
        let _lock = self.poll_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let reference_offset = self.offset.load(Ordering::Acquire) + ahead.0;
        let is_first = self.reference_offset.swap(reference_offset, Ordering::AcqRel) == NO_REFERENCE;
        if is_first {
            self.offset.store(reference_offset, Ordering::Release);
            self.continuous_since.store(clocks.uptime + reference_offset, Ordering::Release);
        }
        is_first
    }
}

impl Clock for SlewedClock {
    fn now(&self) -> Timestamp {
        self.time_at((self.read)())
    }

    fn continuous_since(&self) -> Timestamp {
        Timestamp(self.continuous_since.load(Ordering::Acquire))
    }

    fn follow(&self, ahead: Millis) -> bool {
        self.follow_at((self.read)(), ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: ClockReadings = ClockReadings { wall: 1_000_000_000, uptime: 5_000, awake: 5_000 };
    const MINUTE: i64 = 60_000;

    /// Readings after `elapsed` ms, of which the machine slept `slept`, with a clock that was set by `set`.
    fn readings_after(elapsed: i64, slept: i64, set: i64) -> ClockReadings {
        ClockReadings {
            wall: START.wall + elapsed + set,
            uptime: START.uptime + elapsed,
            awake: START.awake + elapsed - slept,
        }
    }

    /// Returns the time after the start, with a reading every second.
    fn last_time(clock: &SlewedClock, seconds: std::ops::Range<i64>, set: i64) -> i64 {
        seconds
            .map(|second| clock.time_at(readings_after(second * 1_000, 0, set)).0 - START.wall)
            .last()
            .unwrap_or_default()
    }

    #[test]
    fn follows_elapsed_time_and_small_corrections() {
        let clock = SlewedClock::from_readings(START);
        assert_eq!(last_time(&clock, 0..61, 0), MINUTE);
        assert_eq!(clock.time_at(readings_after(MINUTE + 1_000, 0, 30)).0 - START.wall, MINUTE + 1_030);
        assert_eq!(clock.continuous_since().0, START.wall);
    }

    #[test]
    fn jumps_in_either_direction_are_slewed() {
        for set in [10 * MINUTE, -10 * MINUTE] {
            let clock = SlewedClock::from_readings(START);
            assert_eq!(last_time(&clock, 0..61, set), MINUTE + set.signum() * MINUTE / 10);
            assert_eq!(last_time(&clock, 61..3_601, set), 60 * MINUTE + set.signum() * 6 * MINUTE);
            assert_eq!(last_time(&clock, 3_601..7_201, set), 120 * MINUTE + set, "it has caught up");
            assert_eq!(clock.continuous_since().0, START.wall, "no interruption");
        }
    }

    #[test]
    fn never_goes_back_between_two_readings() {
        let clock = SlewedClock::from_readings(START);
        let times: Vec<_> = (0..5_000).map(|ms| clock.time_at(readings_after(ms, 0, -10 * MINUTE))).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn large_offset_is_corrected_immediately() {
        let clock = SlewedClock::from_readings(START);
        let years = 50 * 365 * 24 * 60 * MINUTE;
        assert_eq!(clock.time_at(readings_after(1_000, 0, years)).0 - START.wall, 1_000 + years);
        assert_eq!(clock.continuous_since().0 - START.wall, 1_000 + years);
    }

    #[test]
    fn reference_clock_is_followed_immediately_then_slewed() {
        let clock = SlewedClock::from_readings(START);
        assert!(clock.follow_at(START, Millis(5 * MINUTE)));
        assert_eq!(last_time(&clock, 0..61, 0), 6 * MINUTE);
        assert_eq!(clock.continuous_since().0 - START.wall, 5 * MINUTE);
        assert_eq!(last_time(&clock, 61..121, 10 * MINUTE), 7 * MINUTE, "the machine's own clock is not used");
        // It has drifted, or the other clock was set.
        assert!(!clock.follow_at(readings_after(120_000, 0, 0), Millis(MINUTE)));
        assert_eq!(last_time(&clock, 121..181, 0), 8 * MINUTE + MINUTE / 10);
        assert_eq!(last_time(&clock, 181..1_201, 0), 25 * MINUTE + MINUTE, "it has caught up");
        assert_eq!(clock.continuous_since().0 - START.wall, 5 * MINUTE, "no interruption");
    }

    #[test]
    fn sleep_counts_as_elapsed_time_and_interruption() {
        let clock = SlewedClock::from_readings(START);
        let night = 8 * 60 * MINUTE;
        assert_eq!(clock.time_at(readings_after(night, night, 0)).0 - START.wall, night);
        assert_eq!(clock.continuous_since().0 - START.wall, night);
    }
}
