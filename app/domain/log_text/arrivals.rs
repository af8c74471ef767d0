//! When the parts of a log arrived: a thin index of offsets with times. It is at most as fine as a second, and keeps a
//! limited number of entries, evenly over the time of the attempt, so that a week takes no more than an hour.

use super::super::time::{Millis, Timestamp};

/// The maximum number of entries.
pub const MAX_ARRIVALS: usize = 4_000;
/// The minimum time between two entries.
const MIN_INTERVAL: Millis = Millis::from_secs(1);

/// The bytes from this offset on, up to the next entry, arrived at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Where the bytes begin.
    pub offset: u64,
    /// When they arrived.
    pub at: Timestamp,
}

/// How an arrival changes the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalChange {
    /// It is of the same second as the last entry.
    None,
    /// It is the new last entry.
    Append,
    /// It replaces the last entry, which is too close to the one before: so the last one is always the newest.
    ReplaceLast,
}

/// Decides how an arrival changes the index with these entries: the first, the one before the last, and the last.
pub fn record(entries: Option<(Arrival, Option<Arrival>, Arrival)>, new: Arrival) -> ArrivalChange {
    let Some((first, before, last)) = entries else { return ArrivalChange::Append };
    if new.offset <= last.offset || new.at - last.at < MIN_INTERVAL {
        return ArrivalChange::None;
    }
    let interval = interval_of(last.at - first.at, MAX_ARRIVALS);
    match before {
        Some(before) if last.at - before.at < interval => ArrivalChange::ReplaceLast,
        _ => ArrivalChange::Append,
    }
}

/// Removes entries, so that at most half of the maximum remain, evenly in time; the first and the last stay.
pub fn thin(arrivals: &[Arrival]) -> Vec<Arrival> {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return Vec::new() };
    let interval = interval_of(last.at - first.at, MAX_ARRIVALS / 2 - 2);
    let mut kept = vec![*first];
    for arrival in &arrivals[1..] {
        let is_due = kept.last().is_none_or(|previous| arrival.at - previous.at > interval);
        if is_due || arrival == last {
            kept.push(*arrival);
        }
    }
    kept
}

/// Returns when the byte at this offset arrived; none if it arrived before the first entry.
pub fn arrived_at(arrivals: &[Arrival], offset: u64) -> Option<Timestamp> {
    let after = arrivals.partition_point(|arrival| arrival.offset <= offset);
    after.checked_sub(1).and_then(|at| arrivals.get(at)).map(|arrival| arrival.at)
}

fn interval_of(span: Millis, entries: usize) -> Millis {
    Millis(span.0 / i64::try_from(entries).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Adds an arrival as a file does.
    fn push(arrivals: &mut Vec<Arrival>, new: Arrival) {
        let before = arrivals.len().checked_sub(2).map(|at| arrivals[at]);
        let entries =
            arrivals.first().copied().zip(arrivals.last().copied()).map(|(first, last)| (first, before, last));
        match record(entries, new) {
            ArrivalChange::None => {}
            ArrivalChange::ReplaceLast => *arrivals.last_mut().expect("an entry") = new,
            ArrivalChange::Append => {
                arrivals.push(new);
                if arrivals.len() >= MAX_ARRIVALS {
                    *arrivals = thin(arrivals);
                }
            }
        }
    }

    fn arrivals_every(seconds: i64, count: i64) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for number in 0..count {
            let offset = u64::try_from(number).expect("positive") * 10;
            push(&mut arrivals, Arrival { offset, at: Timestamp(number * seconds * 1_000) });
        }
        arrivals
    }

    #[test]
    fn a_week_keeps_its_ends_and_is_even() {
        const WEEK: i64 = 7 * 86_400;
        let arrivals = arrivals_every(1, WEEK);
        assert!((1_000..MAX_ARRIVALS).contains(&arrivals.len()), "{}", arrivals.len());
        assert_eq!((arrivals[0].at, arrivals[0].offset), (Timestamp(0), 0));
        assert_eq!(arrivals.last().map(|last| last.at), Some(Timestamp((WEEK - 1) * 1_000)), "the newest one");
        let widest = arrivals.windows(2).map(|pair| pair[1].at - pair[0].at).max();
        assert!(widest <= Some(Millis(WEEK)), "at most a thousandth of the time: {widest:?}");
    }

    #[test]
    fn a_short_log_keeps_each_second() {
        assert_eq!(arrivals_every(1, 3_000).len(), 3_000);
        let mut arrivals = arrivals_every(60, 10);
        for (offset, at) in [(91, 540_999), (90, 600_000), (500, 530_000)] {
            push(&mut arrivals, Arrival { offset, at: Timestamp(at) });
        }
        assert_eq!(arrivals.len(), 10, "the same second, a repeated offset, a clock that was set back");
    }

    #[test]
    fn each_byte_has_the_time_of_its_entry() {
        let arrivals = [(10, 1_000), (20, 2_000)].map(|(offset, at)| Arrival { offset, at: Timestamp(at) });
        let found = [0, 9, 10, 19, 20, u64::MAX].map(|offset| arrived_at(&arrivals, offset).map(|at| at.0));
        assert_eq!(found, [None, None, Some(1_000), Some(1_000), Some(2_000), Some(2_000)]);
        assert_eq!(arrived_at(&[], 7), None);
        assert!(thin(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn index_is_ordered_and_limited(steps in prop::collection::vec((0..100_u64, -5_000..100_000_i64), 0..300)) {
            let (mut arrivals, mut offset, mut at) = (Vec::new(), 0, 0);
            for (bytes, millis) in steps {
                (offset, at) = (offset + bytes, at + millis);
                push(&mut arrivals, Arrival { offset, at: Timestamp(at) });
            }
            prop_assert!(arrivals.windows(2).all(|pair| pair[0].offset < pair[1].offset && pair[0].at < pair[1].at));
            prop_assert!(thin(&arrivals).len() <= arrivals.len().min(MAX_ARRIVALS / 2));
        }
    }
}
