//! The clock of a database that several servers share: all of them use it, because a delay set by one server may be ended by
//! another.

use app::domain::time::{Millis, Timestamp};

/// A slower answer does not tell precisely enough when it was given.
const MAX_ROUND_TRIP: Millis = Millis(500);

/// Estimates how far another clock is ahead of this one, from this clock's times of request and response; accurate to half of
/// their difference. `None` if that is too much.
pub fn estimate_offset(asked: Timestamp, theirs: Timestamp, answered: Timestamp) -> Option<Millis> {
    let took = answered.0.checked_sub(asked.0).filter(|took| (0..=MAX_ROUND_TRIP.0).contains(took))?;
    Some(Millis(theirs.0 - asked.0 - took / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_is_estimated_from_the_round_trip() {
        for (asked, theirs, answered, expected) in [
            (1_000, 1_000, 1_000, Some(0)),
            (1_000, 1_002, 1_004, Some(0)),
            (1_000, 301_002, 1_004, Some(300_000)),
            (600_000, 1_000, 600_400, Some(-599_200)),
            (1_000, 1_250, 1_500, Some(0)),
            (1_000, 1_250, 1_501, None),
            // A clock that was set back in between has measured nothing.
            (1_000, 1_250, 999, None),
        ] {
            let found = estimate_offset(Timestamp(asked), Timestamp(theirs), Timestamp(answered));
            assert_eq!(found.map(|ahead| ahead.0), expected, "{asked} {theirs} {answered}");
        }
    }
}
