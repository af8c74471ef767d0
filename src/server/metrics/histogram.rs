//! A histogram of atomics: an observation is two additions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of latencies, in microseconds: 0.5 ms to a minute.
pub const LATENCY_BOUNDS: &[u64] = &[
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 60_000_000,
];
/// Bounds of silence and waiting times, in microseconds: 10 ms to an hour.
pub const WAIT_BOUNDS: &[u64] = &[
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
/// Bounds of the size of group commits.
pub const SIZE_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128];

#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// Stored units per exposed unit: a million microseconds per second.
    per_unit: f64,
    /// One per bound, and one for values above all bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram's values for the exposition.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSnapshot {
    pub sum: f64,
    /// The number of values.
    pub count: u64,
    /// The number of values per bucket, by upper bound.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// For durations, exposed in seconds.
    pub fn of_seconds(bounds: &'static [u64]) -> Self {
        Self::new(bounds, 1_000_000.0)
    }

    /// For plain numbers.
    pub fn of_numbers(bounds: &'static [u64]) -> Self {
        Self::new(bounds, 1.0)
    }

    fn new(bounds: &'static [u64], per_unit: f64) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, per_unit, counts, sum: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Counts a duration.
    pub fn observe_duration(&self, time: Duration) {
        self.observe(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Returns the current values.
    #[expect(clippy::cast_precision_loss, reason = "fractions of what is measured do not matter here")]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let bounds = self.bounds.iter().map(|bound| *bound as f64 / self.per_unit).chain([f64::INFINITY]);
        HistogramSnapshot {
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
    fn value_counts_in_the_first_bucket_that_fits() {
        let sizes = Histogram::of_numbers(&[1, 4]);
        for value in [1, 2, 4, 5, 900] {
            sizes.observe(value);
        }
        let expected =
            HistogramSnapshot { sum: 912.0, count: 5, buckets: vec![(1.0, 1), (4.0, 2), (f64::INFINITY, 2)] };
        assert_eq!(sizes.snapshot(), expected);
    }

    #[test]
    fn durations_are_exposed_in_seconds() {
        let times = Histogram::of_seconds(LATENCY_BOUNDS);
        times.observe_duration(Duration::from_millis(1_500));
        let snapshot = times.snapshot();
        assert!((snapshot.sum - 1.5).abs() < 1e-9 && snapshot.buckets.contains(&(2.5, 1)), "{snapshot:?}");
    }
}
