//! What keys and the pointer do to the x axis, as pure functions.

use super::data::{Chart, Plot};
use crate::ui::axis::AxisRange;

/// The least part of the x axis that can be visible.
const MIN_PART: f64 = 1.0 / 5_000.0;
/// What one key press makes of the visible part.
const ZOOM_STEP: f64 = 0.5;
/// The fraction of the visible part by which a key moves it.
const MOVE_STEP: f64 = 0.25;

/// The effect of a key on the x axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum KeyEffect {
    /// Keeps the cursor where it is.
    Pin,
    /// Makes a part between two fractions of the visible part visible.
    Show(f64, f64),
    /// Makes everything visible.
    ShowAll,
}

/// Returns the effect of a key while the cursor is at `fraction` of the visible part; none if the key has no effect.
pub(super) fn key_effect((key, with_shift): (&str, bool), fraction: Option<f64>) -> Option<KeyEffect> {
    let around = fraction.filter(|fraction| (0.0..=1.0).contains(fraction)).unwrap_or(0.5);
    let scaled = |factor: f64| KeyEffect::Show(around * (1.0 - factor), around + (1.0 - around) * factor);
    Some(match (key, with_shift) {
        ("ArrowLeft", true) => KeyEffect::Show(-MOVE_STEP, 1.0 - MOVE_STEP),
        ("ArrowRight", true) => KeyEffect::Show(MOVE_STEP, 1.0 + MOVE_STEP),
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
    fn keys_have_effects() {
        let cases = [
            ("Enter", false, Some(KeyEffect::Pin)),
            ("0", false, Some(KeyEffect::ShowAll)),
            ("0", true, None),
            ("ArrowLeft", false, None),
            ("Tab", false, None),
        ];
        for (key, with_shift, effect) in cases {
            assert_eq!(key_effect((key, with_shift), None), effect, "{key}");
        }
    }

    #[test]
    fn keys_zoom_around_the_cursor_and_move() {
        let effect = |key, with_shift, fraction| key_effect((key, with_shift), fraction);
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
