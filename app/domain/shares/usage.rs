//! Usage that decays: what was used a half-life ago counts half.

use super::tree::ShareLoad;
use crate::domain::time::{Millis, Timestamp};

/// The half-life of usage if none is set.
pub const DEFAULT_HALF_LIFE: Millis = Millis::from_secs(7 * 86_400);

const DAY_MILLIS: i64 = 86_400_000;

/// What a member of a team has used until a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShareUsage {
    /// Until when.
    pub at: Timestamp,
    /// Decayed GPU time, in milliseconds.
    pub gpu_time: f64,
    /// Decayed time of slots, in milliseconds: of all jobs, also of those without GPUs.
    pub slot_time: f64,
    /// GPU time since the first of the month of `at`, in milliseconds; it does not decay.
    pub month_gpu_time: f64,
}

impl ShareUsage {
    /// Returns the usage at a later time, with this load until then. A time that is not later changes nothing.
    #[must_use]
    pub fn at(self, now: Timestamp, load: &ShareLoad, half_life: Millis) -> Self {
        if now <= self.at {
            return self;
        }
        let (elapsed, half_life) = (millis(now - self.at), millis(half_life).max(1.0));
        let remaining = (-elapsed / half_life).exp2();
        // The integral of the decay over the elapsed time.
        let added = half_life / std::f64::consts::LN_2 * (1.0 - remaining);
        let month = start_of_month(now);
        let (month_before, in_month) =
            if month > self.at { (0.0, millis(now - month)) } else { (self.month_gpu_time, elapsed) };
        Self {
            at: now,
            gpu_time: self.gpu_time * remaining + added * f64::from(load.gpus),
            slot_time: self.slot_time * remaining + added * f64::from(load.jobs),
            month_gpu_time: month_before + in_month * f64::from(load.gpus),
        }
    }
}

impl ShareUsage {
    /// Returns the usage without this much time of a load, which has just passed.
    #[must_use]
    pub fn without(self, time: Millis, load: &ShareLoad) -> Self {
        let time = millis(time);
        let less = |used: f64, number: u32| (used - time * f64::from(number)).max(0.0);
        Self {
            gpu_time: less(self.gpu_time, load.gpus),
            slot_time: less(self.slot_time, load.jobs),
            month_gpu_time: less(self.month_gpu_time, load.gpus),
            ..self
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 285,000 years")]
const fn millis(span: Millis) -> f64 {
    span.0 as f64
}

/// Returns the start of the calendar month, in UTC.
fn start_of_month(at: Timestamp) -> Timestamp {
    let ([_, _, day], _) = at.to_civil();
    Timestamp((at.0.div_euclid(DAY_MILLIS) - (day - 1)) * DAY_MILLIS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(gpus: u32, jobs: u32) -> ShareLoad {
        ShareLoad { jobs, gpus, ..ShareLoad::default() }
    }

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).expect("a time")
    }

    #[test]
    fn usage_counts_half_after_a_half_life() {
        let used = ShareUsage { at: Timestamp(0), gpu_time: 1_000.0, slot_time: 500.0, month_gpu_time: 0.0 };
        let later = used.at(Timestamp(DEFAULT_HALF_LIFE.0), &load(0, 0), DEFAULT_HALF_LIFE);
        assert_eq!((later.gpu_time, later.slot_time), (500.0, 250.0));
        // In the long run, a constant load has used its GPUs for 1.44 half-lives.
        let constant = used.at(Timestamp(DEFAULT_HALF_LIFE.0 * 60), &load(2, 1), DEFAULT_HALF_LIFE);
        let expected = 2.0 * millis(DEFAULT_HALF_LIFE) / std::f64::consts::LN_2;
        assert!(
            (constant.gpu_time / expected - 1.0).abs() < 1e-9
                && (constant.slot_time * 2.0 / expected - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn a_month_begins_at_zero() {
        let used = ShareUsage { at: time("2026-01-31T23:00:00Z"), month_gpu_time: 5.0, ..ShareUsage::default() };
        let in_month = used.at(time("2026-01-31T23:30:00Z"), &load(2, 1), DEFAULT_HALF_LIFE);
        let hours = |usage: ShareUsage| usage.month_gpu_time / 3_600_000.0;
        assert!((hours(in_month) - hours(used) - 1.0).abs() < 1e-9);
        let next = in_month.at(time("2026-02-01T01:00:00Z"), &load(2, 1), DEFAULT_HALF_LIFE);
        assert!((hours(next) - 2.0).abs() < 1e-9);
        let idle = next.at(time("2026-03-05T00:00:00Z"), &load(0, 0), DEFAULT_HALF_LIFE);
        assert!(hours(idle).abs() < 1e-9);
        assert_eq!(start_of_month(time("2024-02-29T12:00:00Z")), time("2024-02-01T00:00:00Z"));
        assert_eq!(start_of_month(time("2026-03-01T00:00:00Z")), time("2026-03-01T00:00:00Z"));
    }

    proptest! {
        /// When servers look does not matter.
        #[test]
        fn usage_does_not_depend_on_steps(
            gpus in 0_u32..9, jobs in 0_u32..9, steps in prop::collection::vec(0_i64..40_000_000, 1..8), used in 0.0..1e9_f64,
        ) {
            let (load, start) = (load(gpus, jobs), ShareUsage { gpu_time: used, ..ShareUsage::default() });
            let end = Timestamp(steps.iter().sum());
            let at_once = start.at(end, &load, DEFAULT_HALF_LIFE);
            let in_steps = steps.iter().fold(start, |usage, step| {
                usage.at(usage.at + Millis(*step), &load, DEFAULT_HALF_LIFE)
            });
            let is_close = |left: f64, right: f64| (left - right).abs() <= 1e-6 * left.abs().max(1.0);
            prop_assert!(is_close(at_once.gpu_time, in_steps.gpu_time) && is_close(at_once.slot_time, in_steps.slot_time));
            prop_assert!(is_close(at_once.month_gpu_time, in_steps.month_gpu_time));
            prop_assert_eq!(at_once.at(Timestamp(end.0 - 1), &load, DEFAULT_HALF_LIFE), at_once, "time does not go back");
        }
    }
}
