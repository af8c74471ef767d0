//! What keys and the pointer do to the cursor and to the x axis, as pure functions.

use super::data::{Chart, Plot};
use crate::ui::axis::AxisRange;

/// The least part of the x axis that can be visible.
const MIN_PART: f64 = 1.0 / 5_000.0;
/// What one key press makes of the visible part.
const ZOOM_STEP: f64 = 0.5;
/// The fraction of the visible part by which a key moves it.
const MOVE_STEP: f64 = 0.25;

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum KeyEffect {
    /// Moves the cursor to a point.
    To(usize),
    /// Removes the cursor.
    Clear,
    /// Keeps the cursor where it is.
    Pin,
    /// Makes a part between two fractions of the visible part visible.
    Show(f64, f64),
    /// Makes everything visible.
    ShowAll,
}

/// Returns the effect of a key for a cursor at index `current` of `number` points, and at `fraction` of the visible
/// part; none if the key has no effect.
pub(super) fn key_effect(
    (key, with_shift): (&str, bool),
    current: Option<usize>,
    number: usize,
    fraction: Option<f64>,
) -> Option<KeyEffect> {
    let to = |index: fn(usize, usize) -> usize| {
        let last = number.checked_sub(1)?;
        Some(KeyEffect::To(index(current.unwrap_or(last), last)))
    };
    let around = fraction.filter(|fraction| (0.0..=1.0).contains(fraction)).unwrap_or(0.5);
    let scaled = |factor: f64| KeyEffect::Show(around * (1.0 - factor), around + (1.0 - around) * factor);
    Some(match (key, with_shift) {
        ("ArrowLeft", true) => KeyEffect::Show(-MOVE_STEP, 1.0 - MOVE_STEP),
        ("ArrowRight", true) => KeyEffect::Show(MOVE_STEP, 1.0 + MOVE_STEP),
        ("ArrowLeft", false) => to(|current, _| current.saturating_sub(1))?,
        ("ArrowRight", false) => to(|current, last| (current + 1).min(last))?,
        ("PageUp", _) => to(|current, _| current.saturating_sub(10))?,
        ("PageDown", _) => to(|current, last| (current + 10).min(last))?,
        ("Home", _) => to(|_, _| 0)?,
        ("End", _) => to(|_, last| last)?,
        ("Escape", _) => KeyEffect::Clear,
        ("Enter", _) => KeyEffect::Pin,
        ("+" | "=", _) => scaled(ZOOM_STEP),
        ("-" | "_", _) => scaled(1.0 / ZOOM_STEP),
        ("0", false) => KeyEffect::ShowAll,
        _ => return None,
    })
}

/// Returns the part of the x axis between two fractions of the visible part of the whole axis; none for all of it.
pub(super) fn visible_part(plot: Plot, chart: &Chart, (from, to): (f64, f64)) -> Option<AxisRange> {
    let (axis, _) = chart.extent()?;
    let ends = (plot.x_fraction(axis.low), plot.x_fraction(axis.high));
    let length = ends.1 - ends.0;
    let wanted = (to - from).max(length * MIN_PART);
    if !wanted.is_finite() || wanted >= length * (1.0 - 1e-6) {
        return None;
    }
    let from = (f64::midpoint(from, to) - wanted / 2.0).clamp(ends.0, ends.1 - wanted);
    Some(AxisRange { low: plot.x_at(from), high: plot.x_at(from + wanted) }.rounded())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::data::ChartSeries;
    use super::*;

    fn chart(zoom: Option<AxisRange>, is_log_x: bool) -> Chart {
        let points = (1..=1_000_u32).map(|x| (f64::from(x), 1.0)).collect();
        Chart { zoom, is_log_x, series: vec![ChartSeries { points, ..ChartSeries::default() }], ..Chart::default() }
    }

    fn shown(chart: &Chart, fractions: (f64, f64)) -> Option<AxisRange> {
        visible_part(chart.plot().expect("points"), chart, fractions)
    }

    #[test]
    fn keys_lead_through_the_points() {
        let cases = [
            ("ArrowLeft", Some(5), Some(KeyEffect::To(4))),
            ("ArrowLeft", Some(0), Some(KeyEffect::To(0))),
            ("ArrowRight", Some(19), Some(KeyEffect::To(19))),
            ("ArrowRight", None, Some(KeyEffect::To(19))),
            ("PageUp", Some(15), Some(KeyEffect::To(5))),
            ("PageDown", Some(15), Some(KeyEffect::To(19))),
            ("Home", Some(5), Some(KeyEffect::To(0))),
            ("End", Some(5), Some(KeyEffect::To(19))),
            ("Escape", Some(5), Some(KeyEffect::Clear)),
            ("Enter", Some(5), Some(KeyEffect::Pin)),
            ("0", Some(5), Some(KeyEffect::ShowAll)),
            ("Tab", Some(5), None),
        ];
        for (key, current, next) in cases {
            assert_eq!(key_effect((key, false), current, 20, None), next, "{key}");
        }
        assert_eq!(key_effect(("Home", false), None, 0, None), None);
        assert_eq!(key_effect(("0", false), None, 0, None), Some(KeyEffect::ShowAll), "back from where no points are");
    }

    #[test]
    fn keys_zoom_around_the_cursor_and_move() {
        let effect = |key, with_shift, fraction| key_effect((key, with_shift), None, 20, fraction);
        assert_eq!(effect("+", true, Some(0.25)), Some(KeyEffect::Show(0.125, 0.625)));
        assert_eq!(effect("+", false, Some(7.0)), Some(KeyEffect::Show(0.25, 0.75)), "the cursor is not visible");
        assert_eq!(effect("-", false, None), Some(KeyEffect::Show(-0.5, 1.5)));
        assert_eq!(effect("ArrowRight", true, None), Some(KeyEffect::Show(0.25, 1.25)));
        assert_eq!(effect("ArrowLeft", true, None), Some(KeyEffect::Show(-0.25, 0.75)));
    }

    #[test]
    fn a_part_stays_within_the_whole() {
        let all = chart(None, false);
        let half = AxisRange { low: 250.75, high: 750.25 };
        assert_eq!(shown(&all, (0.25, 0.75)), Some(half));
        assert_eq!(shown(&all, (-1.0, 2.0)), None, "all of it");
        let zoomed = chart(Some(half), false);
        assert_eq!(shown(&zoomed, (10.0, 11.0)), Some(AxisRange { low: 500.5, high: 1_000.0 }), "moved to the end");
        assert_eq!(shown(&zoomed, (-0.5, 1.5)), None, "zoomed out again");
        let log = shown(&chart(None, true), (0.0, 1.0 / 3.0)).expect("a part");
        assert_eq!(log, AxisRange { low: 1.0, high: 10.0 });
    }

    proptest! {
        #[test]
        fn any_gesture_leaves_a_part_of_the_whole(from in -3.0..3.0_f64, to in -3.0..3.0_f64, is_log_x: bool) {
            let first = shown(&chart(None, is_log_x), (from.min(to), from.max(to)));
            let second = shown(&chart(first, is_log_x), (from.min(to), from.max(to)));
            for part in [first, second].into_iter().flatten() {
                prop_assert!(part.low < part.high);
                prop_assert!(part.low >= 0.999 && part.high <= 1_000.001, "{:?}", part);
            }
        }
    }
}
