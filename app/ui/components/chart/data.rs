//! The data of a chart as plain numbers, and their projection onto the plot area.

use crate::ui::axis::{AxisRange, PlotArea, svg_path};
use crate::ui::format::to_f64;
use crate::ui::i18n::t;

/// The unit of a chart's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ValueUnit {
    /// Any values.
    #[default]
    Plain,
    /// Values whose axis starts at zero.
    Count,
    Percent,
    Gigabytes,
    Celsius,
    Watts,
}

impl ValueUnit {
    /// Formats a value with its unit.
    pub fn format_value(self, value: f64) -> String {
        let with_unit = |digits, unit| format!("{}\u{a0}{unit}", t().locale.fixed(value, digits));
        match self {
            _ if !value.is_finite() => "–".to_owned(),
            Self::Plain | Self::Count => t().format_number(value),
            Self::Percent => t().format_percent(value),
            Self::Gigabytes => with_unit(1, "GB"),
            Self::Celsius => with_unit(0, "°C"),
            Self::Watts => with_unit(0, "W"),
        }
    }

    /// Formats a round value with its unit, as short as possible.
    pub fn format_tick(self, tick: f64) -> String {
        let with_unit = |unit| format!("{} {unit}", trim_zeros(tick));
        match self {
            Self::Plain | Self::Count => trim_zeros(tick),
            Self::Percent => t().format_percent(tick),
            Self::Gigabytes => with_unit("GB"),
            Self::Celsius => with_unit("°C"),
            Self::Watts => with_unit("W"),
        }
    }
}

/// Formats a number; below 100, without trailing zeros after the decimal point.
fn trim_zeros(tick: f64) -> String {
    let text = t().format_number(tick);
    let point = ['.', ','];
    if text.contains('e') || tick.abs() >= 100.0 || !text.contains(point) {
        text
    } else {
        text.trim_end_matches('0').trim_end_matches(point).to_owned()
    }
}

/// The quantity of the x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Axis {
    /// Steps of a training.
    #[default]
    Steps,
    /// Seconds since the first metric point.
    Elapsed,
    /// Seconds since 1970.
    Clock,
}

/// One line; values that are not finite interrupt it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ChartSeries {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// A faint line behind it: the values before smoothing, or the maxima if the line is a mean.
    pub background: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Chart {
    /// Unique on the page.
    pub id: String,
    pub title: String,
    pub unit: ValueUnit,
    pub axis: Axis,
    /// The range of the x axis, if it is wider than the range of the points.
    pub span: Option<AxisRange>,
    /// Minimum of the upper end of the y axis, for units whose axis starts at zero.
    pub min_top: Option<f64>,
    pub is_log: bool,
    /// A note on how the values were processed.
    pub note: Option<String>,
    /// The position after which the values are NaN.
    pub nan_mark: Option<f64>,
    pub series: Vec<ChartSeries>,
}

/// The ranges of a chart's axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plot {
    pub x: AxisRange,
    /// The values themselves, even if the axis is logarithmic.
    pub y: AxisRange,
    pub is_log: bool,
}

impl Chart {
    fn finite_points(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        self.series.iter().flat_map(|line| line.points.iter().chain(&line.background)).copied().filter(is_finite)
    }

    /// Returns the ranges of the axes; none if there is nothing to draw.
    pub fn plot(&self) -> Option<Plot> {
        let x = self.span.or_else(|| AxisRange::enclosing(self.finite_points().map(|(x, _)| x)))?;
        let y = AxisRange::enclosing(self.finite_points().map(|(_, y)| y))?;
        let is_log = self.is_log && y.low > 0.0;
        let top = self.min_top.unwrap_or(y.high).max(y.high);
        let y = match self.unit {
            ValueUnit::Percent => AxisRange { low: 0.0, high: 100.0 },
            ValueUnit::Count | ValueUnit::Gigabytes | ValueUnit::Watts if !is_log => {
                AxisRange { low: 0.0, high: top.max(f64::MIN_POSITIVE) }
            }
            ValueUnit::Celsius => AxisRange { low: y.low.min(y.high - 10.0), high: y.high },
            _ => y,
        };
        Some(Plot { x, y, is_log })
    }

    /// Returns the positions that the cursor can have, in order: those of the longest line, and where it has none, those
    /// of the others.
    pub fn x_positions(&self) -> Vec<f64> {
        let mut lines: Vec<&ChartSeries> = self.series.iter().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.points.len()));
        let (mut positions, mut covered): (Vec<f64>, Option<AxisRange>) = (Vec::new(), None);
        for line in lines {
            let finite = line.points.iter().filter(|(_, y)| y.is_finite()).map(|(x, _)| *x);
            let is_new = |x: &f64| covered.is_none_or(|range| !(range.low..=range.high).contains(x));
            positions.extend(finite.filter(is_new));
            covered = AxisRange::enclosing(positions.iter().copied());
        }
        positions.sort_unstable_by(f64::total_cmp);
        positions.dedup();
        positions
    }
}

impl Plot {
    /// The plot of a chart without values.
    pub const EMPTY: Self =
        Self { x: AxisRange { low: 0.0, high: 1.0 }, y: AxisRange { low: 0.0, high: 1.0 }, is_log: false };

    /// Projects a point onto a plot area.
    pub fn project(self, frame: PlotArea, (x, y): (f64, f64)) -> (f64, f64) {
        let fraction = if self.is_log { log_fraction(self.y, y) } else { self.y.fraction(y) };
        (frame.left + frame.width * self.x.fraction(x), frame.top + frame.height * (1.0 - fraction))
    }

    /// Returns the `d` attribute of a line.
    pub fn path(self, frame: PlotArea, points: &[(f64, f64)]) -> String {
        svg_path(points.iter().map(|point| self.project(frame, *point)))
    }

    /// Returns the point of a line that is nearest to a position, unless it is more than 2 % of the x axis away.
    pub fn value_at(self, line: &ChartSeries, at: f64) -> Option<(f64, f64)> {
        let finite = line.points.iter().filter(|(_, y)| y.is_finite());
        let nearest = finite.min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()))?;
        ((nearest.0 - at).abs() <= (self.x.high - self.x.low) * 0.02).then_some(*nearest)
    }
}

fn log_fraction(range: AxisRange, value: f64) -> f64 {
    let logs = AxisRange { low: range.low.ln(), high: range.high.ln() };
    logs.fraction(value.ln())
}

/// Returns the index of the position that is nearest to a value.
pub(crate) fn nearest_index(grid: &[f64], value: f64) -> Option<usize> {
    (0..grid.len()).min_by(|a, b| (grid[*a] - value).abs().total_cmp(&(grid[*b] - value).abs()))
}

/// Returns the points of intervals of equal length. A period without values becomes a gap if it is longer than three
/// heartbeats and 1.5 intervals.
pub(crate) fn binned_points(from: f64, step: f64, values: &[Option<f64>]) -> Vec<(f64, f64)> {
    const SILENCE: f64 = 90.0;
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        // The middle of the interval.
        let at = from + (to_f64(index as u64) + 0.5) * step;
        if let Some((before, _)) = points.last().filter(|(before, _)| at - before > SILENCE.max(step * 1.5)) {
            points.push((f64::midpoint(*before, at), f64::NAN));
        }
        points.push((at, *value));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: PlotArea = PlotArea { left: 10.0, top: 5.0, width: 100.0, height: 50.0 };

    fn chart(unit: ValueUnit, points: &[(f64, f64)]) -> Chart {
        let line = ChartSeries { points: points.to_vec(), ..ChartSeries::default() };
        let (id, title) = (String::new(), String::new());
        Chart { id, title, unit, axis: Axis::Steps, series: vec![line], ..Chart::default() }
    }

    #[test]
    fn chart_without_data_has_no_plot() {
        assert_eq!(chart(ValueUnit::Plain, &[]).plot(), None);
        assert_eq!(chart(ValueUnit::Plain, &[(1.0, f64::NAN)]).plot(), None);
    }

    #[test]
    fn plot_fills_its_frame() {
        let plot = chart(ValueUnit::Plain, &[(0.0, 2.0), (30.0, 1.0)]).plot().unwrap();
        assert_eq!(plot.project(FRAME, (0.0, 2.0)), (10.0, 5.0));
        assert_eq!(plot.project(FRAME, (30.0, 1.0)), (110.0, 55.0));
        let log = Chart { is_log: true, ..chart(ValueUnit::Plain, &[(0.0, 100.0), (1.0, 1.0)]) }.plot().unwrap();
        let (_, y) = log.project(FRAME, (0.0, 10.0));
        assert!((y - 30.0).abs() < 1e-9, "ten is halfway between one and a hundred");
        assert!(!Chart { is_log: true, ..chart(ValueUnit::Plain, &[(0.0, 1.0), (1.0, 0.0)]) }.plot().unwrap().is_log);
    }

    #[test]
    fn units_have_their_own_ranges() {
        let range = |unit| chart(unit, &[(0.0, 40.0), (1.0, 42.0)]).plot().unwrap().y;
        assert_eq!(range(ValueUnit::Percent), AxisRange { low: 0.0, high: 100.0 });
        assert_eq!(range(ValueUnit::Watts), AxisRange { low: 0.0, high: 42.0 });
        assert_eq!(range(ValueUnit::Celsius), AxisRange { low: 32.0, high: 42.0 });
        let memory = Chart { min_top: Some(80.0), ..chart(ValueUnit::Gigabytes, &[(0.0, 40.0)]) };
        assert_eq!(memory.plot().unwrap().y, AxisRange { low: 0.0, high: 80.0 });
        assert!(chart(ValueUnit::Count, &[(0.0, 0.0)]).plot().unwrap().y.high > 0.0);
    }

    #[test]
    fn silence_is_a_gap_and_a_slow_agent_is_none() {
        let finite_points = |step: f64, values: &[Option<f64>]| -> Vec<bool> {
            binned_points(0.0, step, values).iter().map(|(_, y)| y.is_finite()).collect()
        };
        assert_eq!(finite_points(15.0, &[Some(1.0), None, Some(2.0)]), [true, true]);
        assert_eq!(
            finite_points(15.0, &[Some(1.0), None, None, None, None, None, None, Some(2.0)]),
            [true, false, true]
        );
        assert_eq!(finite_points(120.0, &[Some(1.0), Some(2.0), None, Some(2.0)]), [true, true, false, true]);
        assert_eq!(binned_points(100.0, 10.0, &[None, Some(3.0)]), [(115.0, 3.0)]);
    }

    #[test]
    fn chart_reads_the_nearest_point() {
        let chart = chart(ValueUnit::Plain, &[(0.0, 2.0), (50.0, f64::NAN), (99.0, 1.0), (100.0, 4.0)]);
        let plot = chart.plot().unwrap();
        assert_eq!(plot.value_at(&chart.series[0], 98.6), Some((99.0, 1.0)));
        assert_eq!(plot.value_at(&chart.series[0], 50.0), None);
        assert_eq!(chart.x_positions(), [0.0, 99.0, 100.0]);
        let longer = ChartSeries { points: vec![(30.0, 1.0), (150.0, 1.0)], ..ChartSeries::default() };
        let both = Chart { series: vec![longer, chart.series[0].clone()], ..Chart::default() };
        assert_eq!(both.x_positions(), [0.0, 99.0, 100.0, 150.0], "another line continues");
        assert_eq!(nearest_index(&chart.x_positions(), 60.0), Some(1));
        assert_eq!(nearest_index(&[], 60.0), None);
    }

    #[test]
    fn ticks_are_short() {
        for (tick, text) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (0.05, "0.05"),
            (2.5, "2.5"),
            (10.0, "10"),
            (100.0, "100"),
            (2_000.0, "2,000"),
            (0.0001, "1.0e-4"),
        ] {
            assert_eq!(ValueUnit::Plain.format_tick(tick), text);
        }
        assert_eq!([ValueUnit::Percent.format_tick(50.0), ValueUnit::Watts.format_tick(400.0)], ["50%", "400 W"]);
    }
}
