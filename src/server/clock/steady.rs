//! The machine's clock, as one that nobody sets: what a server decides depends on how much time has passed.
//!
//! Clocks are set while servers run, by minutes or by years. Whoever reads them as they are then takes every worker for
//! silent, ends jobs that may run longer, or lets nobody in until the time of their last request has come again. So this
//! one goes by the time that has passed, and follows the machine's clock slowly; or another one, if it is shown one.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use app::domain::time::{Millis, Timestamp};
use nix::time::{ClockId, clock_gettime};

use super::{Clock, SystemClock};

/// It follows by so much of the time that has passed: a tenth.
const FOLLOWS_BY: i64 = 10;
/// Looked at so often, in ms: no longer than a step takes, or it would go back by more than one.
const LOOK: i64 = FOLLOWS_BY;
/// What is further away than this was never right before (a machine that starts in 1970), and is followed at once.
pub const NEVER_RIGHT: Millis = Millis::seconds(3_600);
/// Nobody has shown it another clock.
const OWN: i64 = i64::MIN;
/// Sleep shorter than this is not told from none, in ms.
const NAP: i64 = 1_000;

/// See the module.
#[derive(Debug)]
pub struct SteadyClock {
    /// What is told, less the time since the machine was started.
    offset: AtomicI64,
    /// What another clock tells, less the time since the machine was started.
    other: AtomicI64,
    /// When it was looked at last, by the time since the machine was started.
    looked: AtomicI64,
    /// Held by who looks.
    turn: Mutex<()>,
    /// How long the machine has slept.
    slept: AtomicI64,
    /// What is told of the moment at which its course was broken last.
    unbroken_since: AtomicI64,
}

/// How the machine's clocks stand, in ms.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    /// Since 1970; it may be set.
    wall: i64,
    /// Since the machine was started.
    up: i64,
    /// The same, less the time in which it slept.
    awake: i64,
}

impl Clocks {
    fn read() -> Self {
        let since_start = |id| clock_gettime(id).map_or(0, |time| millis(Duration::from(time)));
        let awake = since_start(ClockId::CLOCK_MONOTONIC);
        Self { wall: SystemClock.now().0, up: since_start(ClockId::CLOCK_BOOTTIME).max(awake), awake }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl SteadyClock {
    /// As the machine's clock is now.
    pub fn new() -> Self {
        Self::at(Clocks::read())
    }

    fn at(clocks: Clocks) -> Self {
        Self {
            offset: AtomicI64::new(clocks.wall - clocks.up),
            other: AtomicI64::new(OWN),
            looked: AtomicI64::new(clocks.up),
            turn: Mutex::default(),
            slept: AtomicI64::new(clocks.up - clocks.awake),
            unbroken_since: AtomicI64::new(clocks.wall),
        }
    }

    fn told(&self, clocks: Clocks) -> Timestamp {
        let passed = || clocks.up - self.looked.load(Ordering::Acquire);
        // One of those who come at the same time looks.
        if passed() >= LOOK
            && let Ok(_turn) = self.turn.try_lock()
            && passed() >= LOOK
        {
            self.look(clocks, passed());
            self.looked.store(clocks.up, Ordering::Release);
        }
        Timestamp(clocks.up + self.offset.load(Ordering::Acquire))
    }

    fn look(&self, clocks: Clocks, passed: i64) {
        let slept = clocks.up - clocks.awake;
        let nap = slept - self.slept.swap(slept, Ordering::AcqRel);
        let offset = self.offset.load(Ordering::Acquire);
        let followed = match self.other.load(Ordering::Acquire) {
            OWN => clocks.wall - clocks.up,
            other => other,
        };
        let ahead = followed - offset;
        let jumps = ahead.abs() > NEVER_RIGHT.0;
        let step = if jumps { ahead } else { ahead.clamp(-passed / FOLLOWS_BY, passed / FOLLOWS_BY) };
        self.offset.fetch_add(step, Ordering::AcqRel);
        if jumps || nap > NAP {
            tracing::warn!(
                seconds = if jumps { ahead } else { nap } / 1_000,
                "the clock that is followed was set, or the machine slept"
            );
            self.unbroken_since.store(clocks.up + offset + step, Ordering::Release);
        }
    }

    /// The first time at once: by its own it may have told anything.
    fn follow_at(&self, clocks: Clocks, ahead: Millis) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let right = self.offset.load(Ordering::Acquire) + ahead.0;
        let is_first = self.other.swap(right, Ordering::AcqRel) == OWN;
        if is_first {
            self.offset.store(right, Ordering::Release);
            self.unbroken_since.store(clocks.up + right, Ordering::Release);
        }
        is_first
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.told(Clocks::read())
    }

    fn unbroken_since(&self) -> Timestamp {
        Timestamp(self.unbroken_since.load(Ordering::Acquire))
    }

    fn follow(&self, ahead: Millis) -> bool {
        self.follow_at(Clocks::read(), ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Clocks = Clocks { wall: 1_000_000_000, up: 5_000, awake: 5_000 };
    const MINUTE: i64 = 60_000;

    /// After `passed` ms, of which it slept `slept`, on a clock that was set by `set`.
    fn later(passed: i64, slept: i64, set: i64) -> Clocks {
        Clocks { wall: START.wall + passed + set, up: START.up + passed, awake: START.awake + passed - slept }
    }

    /// What is told of the time since the start, looked at each second.
    fn tell(clock: &SteadyClock, seconds: std::ops::Range<i64>, set: i64) -> i64 {
        seconds.map(|second| clock.told(later(second * 1_000, 0, set)).0 - START.wall).last().unwrap_or_default()
    }

    #[test]
    fn it_tells_what_has_passed_and_follows_what_is_slewed() {
        let clock = SteadyClock::at(START);
        assert_eq!(tell(&clock, 0..61, 0), MINUTE);
        assert_eq!(clock.told(later(MINUTE + 1_000, 0, 30)).0 - START.wall, MINUTE + 1_030);
        assert_eq!(clock.unbroken_since().0, START.wall);
    }

    #[test]
    fn a_clock_that_is_set_is_followed_slowly_either_way() {
        for set in [10 * MINUTE, -10 * MINUTE] {
            let clock = SteadyClock::at(START);
            assert_eq!(tell(&clock, 0..61, set), MINUTE + set.signum() * MINUTE / 10);
            assert_eq!(tell(&clock, 61..3_601, set), 60 * MINUTE + set.signum() * 6 * MINUTE);
            assert_eq!(tell(&clock, 3_601..7_201, set), 120 * MINUTE + set, "it has caught up");
            assert_eq!(clock.unbroken_since().0, START.wall, "nobody has to know");
        }
    }

    #[test]
    fn it_never_goes_back_between_two_looks_however_close() {
        let clock = SteadyClock::at(START);
        let times: Vec<_> = (0..5_000).map(|ms| clock.told(later(ms, 0, -10 * MINUTE))).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn what_was_never_right_is_followed_at_once_and_said() {
        let clock = SteadyClock::at(START);
        let years = 50 * 365 * 24 * 60 * MINUTE;
        assert_eq!(clock.told(later(1_000, 0, years)).0 - START.wall, 1_000 + years);
        assert_eq!(clock.unbroken_since().0 - START.wall, 1_000 + years);
    }

    #[test]
    fn another_clock_is_followed_at_once_and_from_then_on_slowly_whatever_becomes_of_the_machines() {
        let clock = SteadyClock::at(START);
        assert!(clock.follow_at(START, Millis(5 * MINUTE)));
        assert_eq!(tell(&clock, 0..61, 0), 6 * MINUTE);
        assert_eq!(clock.unbroken_since().0 - START.wall, 5 * MINUTE);
        assert_eq!(tell(&clock, 61..121, 10 * MINUTE), 7 * MINUTE, "the machine's own is set, and nobody cares");
        // It has drifted, or the other one was set.
        assert!(!clock.follow_at(later(120_000, 0, 0), Millis(MINUTE)));
        assert_eq!(tell(&clock, 121..181, 0), 8 * MINUTE + MINUTE / 10);
        assert_eq!(tell(&clock, 181..1_201, 0), 25 * MINUTE + MINUTE, "it has caught up");
        assert_eq!(clock.unbroken_since().0 - START.wall, 5 * MINUTE, "nobody has to know");
    }

    #[test]
    fn sleep_is_time_that_has_passed_without_listening() {
        let clock = SteadyClock::at(START);
        let night = 8 * 60 * MINUTE;
        assert_eq!(clock.told(later(night, night, 0)).0 - START.wall, night);
        assert_eq!(clock.unbroken_since().0 - START.wall, night);
    }
}
