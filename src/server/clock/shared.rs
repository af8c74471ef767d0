//! The clock of a database that several servers share: all of them go by it, or what one of them keeps back for a minute
//! another would give away at once.

use app::domain::time::{Millis, Timestamp};

/// An answer that took longer says too little about when it was given.
const SURE: Millis = Millis(500);

/// By how much another clock is ahead of this one, which said `asked` and `answered` when it was asked and had answered:
/// right to half of what lies between them. None if that is too much.
pub fn ahead(asked: Timestamp, theirs: Timestamp, answered: Timestamp) -> Option<Millis> {
    let took = answered.0.checked_sub(asked.0).filter(|took| (0..=SURE.0).contains(took))?;
    Some(Millis(theirs.0 - asked.0 - took / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answered_somewhere_in_between() {
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
            let found = ahead(Timestamp(asked), Timestamp(theirs), Timestamp(answered));
            assert_eq!(found.map(|ahead| ahead.0), expected, "{asked} {theirs} {answered}");
        }
    }
}
