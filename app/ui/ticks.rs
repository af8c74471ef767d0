//! The arithmetic of a chart: round tick marks, scaling into a frame, smoothing.

use std::fmt::Write as _;

/// A frame's inner rectangle in SVG units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A closed range of numbers with some width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// The smallest range that holds every finite number, widened if they are all the same.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = numbers
            .filter(|number| number.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
        if low > high {
            return None;
        }
        let pad = if low < high { 0.0 } else { low.abs().max(1.0) * 0.05 };
        Some(Self { low: low - pad, high: high + pad })
    }

    /// Where a number lies, from 0 to 1.
    pub fn share(self, number: f64) -> f64 {
        (number - self.low) / (self.high - self.low)
    }
}

/// About `count` round numbers (1, 2 or 5 times a power of ten apart) within the range.
pub(crate) fn ticks(range: Range, count: u32) -> Vec<f64> {
    let rough = (range.high - range.low) / f64::from(count.max(1));
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (range.low / step).ceil();
    // A step too small to change the number would never end.
    (0..32)
        .map(|place| (first + f64::from(place)) * step)
        .take_while(|tick| *tick <= range.high + step * 1e-9)
        .map(|tick| if tick == 0.0 { 0.0 } else { tick })
        .collect()
}

/// Exponential smoothing from both ends, averaged: from one end only it would lag behind a falling curve.
pub(crate) fn smooth(values: &[f64], weight: f64) -> Vec<f64> {
    let mut smoothed: Vec<f64> = one_way(values.iter(), weight).collect();
    let backward: Vec<f64> = one_way(values.iter().rev(), weight).collect();
    for (value, other) in smoothed.iter_mut().zip(backward.iter().rev()) {
        *value = f64::midpoint(*value, *other);
    }
    smoothed
}

/// Corrected for its start, as the moments of the Adam optimiser are, so that the first values are not drawn to zero.
fn one_way<'a>(values: impl Iterator<Item = &'a f64>, weight: f64) -> impl Iterator<Item = f64> {
    let (mut mean, mut mass) = (0.0, 0.0);
    values.map(move |value| {
        mean = weight * mean + (1.0 - weight) * value;
        mass = weight * mass + (1.0 - weight);
        mean / mass
    })
}

/// The `d` of a line through the points.
pub(crate) fn line(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (place, (x, y)) in points.enumerate() {
        path.push_str(if place == 0 { "M" } else { "L" });
        _ = write!(path, "{x:.1} {y:.1}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_is_finite() {
        let range = |numbers: &[f64]| Range::of(numbers.iter().copied());
        assert_eq!(range(&[]), None);
        assert_eq!(range(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(range(&[2.0, f64::NAN, 1.0]), Some(Range { low: 1.0, high: 2.0 }));
        let flat = range(&[3.0]).unwrap();
        assert!(flat.low < 3.0 && flat.high > 3.0);
        assert!((flat.share(3.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(Range { low: 0.0, high: 1.0 }, 5), vec![0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]);
        assert_eq!(ticks(Range { low: 3.0, high: 97.0 }, 4), vec![50.0]);
        assert_eq!(ticks(Range { low: -1.0, high: 1.0 }, 4), vec![-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(ticks(Range { low: 1.0, high: 1.0 }, 4), Vec::<f64>::new());
        assert!(ticks(Range { low: 1e16, high: 1e16 + 2.0 }, 1_000).len() <= 32);
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
    fn a_line_starts_with_a_move() {
        assert_eq!(line([(0.0, 1.0), (2.0, 3.25)].into_iter()), "M0.0 1.0L2.0 3.2");
        assert_eq!(line(std::iter::empty()), "");
    }
}
