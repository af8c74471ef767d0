//! The clock of a database that several servers share: all of them use it, because a delay set by one server may be
//! ended by another.

use app::domain::time::{Millis, Timestamp};

/// After a longer round trip the estimate would be too inaccurate.
const MAX_ROUND_TRIP: Millis = Millis(500);

/// Estimates how far another clock is ahead of this one, from this clock's times of request and response; accurate to
/// half of their difference. `None` if that is too much.
pub fn estimate_offset(requested_at: Timestamp, remote_time: Timestamp, responded_at: Timestamp) -> Option<Millis> {
    let round_trip =
        responded_at.0.checked_sub(requested_at.0).filter(|round_trip| (0..=MAX_ROUND_TRIP.0).contains(round_trip))?;
    Some(Millis(remote_time.0 - requested_at.0 - round_trip / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_is_estimated_from_the_round_trip() {
        for (requested_at, remote_time, responded_at, expected) in [
            (1_000, 1_000, 1_000, Some(0)),
            (1_000, 1_002, 1_004, Some(0)),
            (1_000, 301_002, 1_004, Some(300_000)),
            (600_000, 1_000, 600_400, Some(-599_200)),
            (1_000, 1_250, 1_500, Some(0)),
            (1_000, 1_250, 1_501, None),
            // The clock was set back between request and response.
            (1_000, 1_250, 999, None),
        ] {
            let offset = estimate_offset(Timestamp(requested_at), Timestamp(remote_time), Timestamp(responded_at));
            assert_eq!(offset.map(|ahead| ahead.0), expected, "{requested_at} {remote_time} {responded_at}");
        }
    }
}
