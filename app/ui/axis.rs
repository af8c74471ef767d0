//! Chart geometry: tick marks, scaling, smoothing and SVG paths.

use std::fmt::Write as _;

/// The inner rectangle of a chart, in SVG units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlotArea {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A closed range of numbers, wider than zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AxisRange {
    pub low: f64,
    pub high: f64,
}

impl AxisRange {
    /// Returns the smallest range that contains every finite number, widened if they are all equal.
    pub fn enclosing(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = numbers
            .filter(|number| number.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
        if low > high {
            return None;
        }
        let pad = if low < high { 0.0 } else { low.abs().max(1.0) * 0.05 };
        Some(Self { low: low - pad, high: high + pad })
    }

    /// Returns the range with ends that are short in an address: seven significant digits.
    pub fn rounded(self) -> Self {
        let round = |number: f64| format!("{number:.6e}").parse().unwrap_or(number);
        let rounded = Self { low: round(self.low), high: round(self.high) };
        if rounded.low < rounded.high { rounded } else { self }
    }

    /// Returns the position of a number in the range, from 0 to 1.
    pub fn fraction(self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }
}

/// The fraction of the ideal step that a round step must reach, so that there can be slightly more ticks than
/// requested.
const STEP_TOLERANCE: f64 = 0.75;

/// Returns about `count` round numbers within the range, spaced by 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(range: AxisRange, count: u32) -> Vec<f64> {
    let ideal_step = (range.high - range.low) / f64::from(count.max(1));
    if !(ideal_step.is_finite() && ideal_step > 0.0) {
        return Vec::new();
    }
    let power = 10_f64.powf(ideal_step.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= ideal_step * STEP_TOLERANCE);
    let step = step.unwrap_or(10.0 * power);
    let first = (range.low / step).ceil();
    // The limit also ends the iteration if the step is too small to change the number.
    (0..32)
        .map(|index| (first + f64::from(index)) * step)
        .take_while(|tick| *tick <= range.high + step * 1e-9)
        .map(|tick| if tick == 0.0 { 0.0 } else { tick })
        .collect()
}

/// Smooths exponentially from both ends and averages the results: smoothing from one end only lags behind the curve.
pub(crate) fn smooth(values: &[f64], weight: f64) -> Vec<f64> {
    let mut smoothed: Vec<f64> = exponential_means(values.iter(), weight).collect();
    let backward: Vec<f64> = exponential_means(values.iter().rev(), weight).collect();
    for (value, other) in smoothed.iter_mut().zip(backward.iter().rev()) {
        *value = f64::midpoint(*value, *other);
    }
    smoothed
}

/// Corrects the bias at the start, as the Adam optimizer does for its moments, so that the first values are not drawn
/// to zero.
fn exponential_means<'a>(values: impl Iterator<Item = &'a f64>, weight: f64) -> impl Iterator<Item = f64> {
    let (mut mean, mut weight_sum) = (0.0, 0.0);
    values.map(move |value| {
        mean = weight * mean + (1.0 - weight) * value;
        weight_sum = weight * weight_sum + (1.0 - weight);
        mean / weight_sum
    })
}

/// Returns ticks for a logarithmic axis: powers of ten, also 2 and 5 times them if there are few.
pub(crate) fn log_ticks(range: AxisRange) -> Vec<f64> {
    let powers = |factors: &[f64]| -> Vec<f64> {
        let (low, high) = (range.low.log10().floor(), range.high.log10().ceil());
        let decades = (0..32).map(|exponent| low + f64::from(exponent)).take_while(|power| *power <= high);
        let candidates = decades.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powf(power)));
        candidates.filter(|tick| (range.low * 0.999..=range.high * 1.001).contains(tick)).collect()
    };
    let mut ticks = powers(&[1.0]);
    if ticks.len() < 2 {
        ticks = powers(&[1.0, 2.0, 5.0]);
    }
    // Thins out the ticks if there are many decades.
    let stride = ticks.len().div_ceil(5).max(1);
    ticks.into_iter().step_by(stride).collect()
}

/// Common intervals of time, in seconds.
const TIME_STEPS: [f64; 18] = [
    1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0, 14_400.0, 21_600.0,
    43_200.0, 86_400.0, 172_800.0,
];

/// Returns about `count` times, in seconds and at least `min_step` apart, that are round on a clock `utc_offset`
/// seconds ahead of UTC.
pub(crate) fn time_ticks(range: AxisRange, count: u32, min_step: f64, utc_offset: f64) -> Vec<f64> {
    let ideal_step = ((range.high - range.low) / f64::from(count.max(1)) * STEP_TOLERANCE).max(min_step);
    let Some(step) = TIME_STEPS.into_iter().find(|span| *span >= ideal_step) else { return ticks(range, count) };
    let first = ((range.low + utc_offset) / step).ceil();
    let times = (0..32).map(|index| (first + f64::from(index)) * step - utc_offset);
    times.take_while(|tick| *tick <= range.high).collect()
}

/// Returns the `d` attribute of a line through the points. Values that are not finite interrupt it; a single point is
/// drawn as a dot.
pub(crate) fn svg_path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    let mut starts_segment = true;
    for (x, y) in points {
        if !(x.is_finite() && y.is_finite()) {
            starts_segment = true;
            continue;
        }
        path.push_str(if starts_segment { "M" } else { "L" });
        _ = write!(path, "{x:.1} {y:.1}");
        if starts_segment {
            path.push_str("h0");
        }
        starts_segment = false;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_ignore_non_finite_values() {
        let range = |numbers: &[f64]| AxisRange::enclosing(numbers.iter().copied());
        assert_eq!(range(&[]), None);
        assert_eq!(range(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(range(&[2.0, f64::NAN, 1.0]), Some(AxisRange { low: 1.0, high: 2.0 }));
        let flat = range(&[3.0]).unwrap();
        assert!(flat.low < 3.0 && flat.high > 3.0);
        assert!((flat.fraction(3.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn rounded_ranges_are_short_and_not_empty() {
        let rounded = |low, high| AxisRange { low, high }.rounded();
        assert_eq!(rounded(0.1 + 0.2, 1_234.567_89), AxisRange { low: 0.3, high: 1_234.568 });
        let narrow = AxisRange { low: 1e9, high: 1e9 + 1.0 };
        assert_eq!(narrow.rounded(), narrow);
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(AxisRange { low: 0.0, high: 1.0 }, 5), vec![0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]);
        assert_eq!(ticks(AxisRange { low: 3.0, high: 97.0 }, 4), vec![20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ticks(AxisRange { low: -1.0, high: 1.0 }, 4), vec![-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(ticks(AxisRange { low: 1.0, high: 1.0 }, 4), Vec::<f64>::new());
        assert!(ticks(AxisRange { low: 1e16, high: 1e16 + 2.0 }, 1_000).len() <= 32);
    }

    #[test]
    fn smoothing_keeps_a_constant_and_the_middle_of_a_slope() {
        assert_eq!(smooth(&[], 0.9), Vec::<f64>::new());
        for value in smooth(&[2.0; 20], 0.9) {
            assert!((value - 2.0).abs() < 1e-9);
        }
        let falling = smooth(&[5.0, 4.0, 3.0, 2.0, 1.0], 0.9);
        assert!((falling[2] - 3.0).abs() < 1e-9 && falling[0] < 5.0 && falling[4] > 1.0);
    }

    #[test]
    fn line_has_gaps_at_missing_values() {
        assert_eq!(svg_path([(0.0, 1.0), (2.0, 3.25)].into_iter()), "M0.0 1.0h0L2.0 3.2");
        assert_eq!(svg_path([(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0)].into_iter()), "M0.0 1.0h0M2.0 3.0h0");
        assert_eq!(svg_path(std::iter::empty()), "");
    }

    #[test]
    fn logarithmic_ticks_are_powers_or_between_them() {
        let ticks = |low, high| log_ticks(AxisRange { low, high });
        assert_eq!(ticks(0.05, 20.0), [0.1, 1.0, 10.0]);
        assert_eq!(ticks(1.5, 6.0), [2.0, 5.0]);
        assert!(ticks(1e-12, 1e9).len() <= 5);
    }

    #[test]
    fn time_ticks_are_round_in_the_readers_time_zone() {
        let ticks = |low, high, count, utc_offset| time_ticks(AxisRange { low, high }, count, 60.0, utc_offset);
        assert_eq!(ticks(100.0, 3_700.0, 4, 0.0), [900.0, 1_800.0, 2_700.0, 3_600.0]);
        assert_eq!(ticks(0.0, 86_400.0, 6, 0.0).len(), 9);
        // At an offset of 30 minutes, full local hours are half past the hour in UTC.
        assert_eq!(ticks(0.0, 14_400.0, 4, 1_800.0), [1_800.0, 5_400.0, 9_000.0, 12_600.0]);
        assert!(ticks(0.0, 1e12, 4, 0.0).len() <= 32);
        assert_eq!(ticks(30.0, 45.0, 4, 0.0), [0.0; 0], "two marks of the same minute would be identical");
        assert_eq!(time_ticks(AxisRange { low: 0.0, high: 300.0 }, 3, 1.0, 0.0), [0.0, 120.0, 240.0]);
    }
}
