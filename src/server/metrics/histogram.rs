//! A histogram of atomics: to observe is to add to two of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of times that a person notices or a database takes, in microseconds: 0.5 ms to a minute.
pub const TIMES: &[u64] = &[
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 60_000_000,
];
/// Bounds of times that a worker is silent or a job waits, in microseconds: 10 ms to an hour.
pub const WAITS: &[u64] = &[
    10_000,
    100_000,
    1_000_000,
    5_000_000,
    15_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    900_000_000,
    3_600_000_000,
];
/// Bounds of how many are committed together.
pub const SIZES: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128];

/// See the module.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// How many of these stand for one in the exposition: a million microseconds for a second.
    per_unit: f64,
    /// One for each bound, and one for what is above them all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// What it has counted, as the exposition takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The sum of all values.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
    /// How many there were up to each bound, and above the one before it.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Of times, in seconds.
    pub fn of_seconds(bounds: &'static [u64]) -> Self {
        Self::new(bounds, 1_000_000.0)
    }

    /// Of plain numbers.
    pub fn of_numbers(bounds: &'static [u64]) -> Self {
        Self::new(bounds, 1.0)
    }

    fn new(bounds: &'static [u64], per_unit: f64) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, per_unit, counts, sum: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub fn observe(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Counts a time.
    pub fn took(&self, time: Duration) {
        self.observe(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// What was counted until now.
    #[expect(clippy::cast_precision_loss, reason = "fractions of what is measured do not matter here")]
    pub fn counted(&self) -> Counted {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / self.per_unit).chain([f64::INFINITY]);
        Counted {
            sum: self.sum.load(Ordering::Relaxed) as f64 / self.per_unit,
            count: counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_first_bucket_that_holds_them() {
        let sizes = Histogram::of_numbers(&[1, 4]);
        for value in [1, 2, 4, 5, 900] {
            sizes.observe(value);
        }
        let expected = Counted { sum: 912.0, count: 5, buckets: vec![(1.0, 1), (4.0, 2), (f64::INFINITY, 2)] };
        assert_eq!(sizes.counted(), expected);
    }

    #[test]
    fn times_are_in_seconds() {
        let times = Histogram::of_seconds(TIMES);
        times.took(Duration::from_millis(1_500));
        let counted = times.counted();
        assert!((counted.sum - 1.5).abs() < 1e-9 && counted.buckets.contains(&(2.5, 1)), "{counted:?}");
    }
}
