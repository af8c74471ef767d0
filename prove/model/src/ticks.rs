//! Time in ticks relative to now, so that the number of states stays finite without a bound on time.
//!
//! A tick is 10 s, the unit of all delays in the rules (back-off, slack of the fencing delay). The rules are always called
//! at [`NOW`]; when time passes, all stored times are shifted.

use app::domain::time::{Millis, Timestamp};

/// A time relative to now: negative in the past.
pub type Ticks = i8;

/// The current time of every call of the rules.
pub const NOW: Timestamp = Timestamp(1_000_000_000_000);
/// Time for which an agent may be silent, and for which a lease lasts.
pub const TIMEOUT: Ticks = 2;
/// Time for which an offer waits for an answer.
pub const OFFER_TIMEOUT: Ticks = 2;
/// Messages that take longer are lost. (The agent gives up after 20 s, `REQUEST_TIMEOUT` in `src/worker/api`.)
pub const MAX_DELAY: Ticks = 2;
/// Older times are equal to each other: no rule distinguishes them.
pub const HORIZON: Ticks = TIMEOUT + 1;

const TICK: Millis = Millis::from_secs(10);

/// Returns a duration for the rules.
pub const fn duration(ticks: Ticks) -> Millis {
    Millis(ticks as i64 * TICK.0)
}

/// Returns a time for the rules.
pub fn timestamp(at: Ticks) -> Timestamp {
    NOW + duration(at)
}

/// Returns a time of the rules in ticks.
pub fn ticks(at: Timestamp) -> Ticks {
    let millis = (at - NOW).0;
    assert_eq!(millis % TICK.0, 0, "the rules use whole ticks");
    Ticks::try_from((millis / TICK.0).max(-i64::from(HORIZON))).expect("not far in the future")
}

/// Lets a tick pass for a time in the past.
pub fn age(at: &mut Ticks) {
    *at = (*at - 1).max(-HORIZON);
}

/// Lets a tick pass for a deadline. All deadlines that have passed are equal.
pub fn approach(at: &mut Ticks) {
    *at = (*at - 1).max(0);
}
