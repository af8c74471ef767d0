//! The data of a chart as plain numbers, and their projection onto the plot area.

use super::options::YLimits;
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
pub(super) fn trim_zeros(tick: f64) -> String {
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
    /// Epochs of a training.
    Epochs,
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
    pub gaps: Vec<Gap>,
}

/// Where a line has values that are not finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gap {
    pub from: f64,
    pub to: f64,
    /// The number of these values.
    pub values: u64,
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
    pub is_log_x: bool,
    /// The visible part of the x axis, if not all of it.
    pub zoom: Option<AxisRange>,
    pub y_limits: YLimits,
    /// A note on how the values were processed.
    pub note: Option<String>,
    pub series: Vec<ChartSeries>,
}

/// The ID of the chart of a metric is this and the metric's name.
pub(crate) const METRIC_PREFIX: &str = "metric-";

/// The ranges of a chart's axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plot {
    pub x: AxisRange,
    /// The values themselves, even if the axis is logarithmic.
    pub y: AxisRange,
    pub is_log: bool,
    pub is_log_x: bool,
}

impl Chart {
    /// Returns the name of the metric that it shows.
    pub fn metric(&self) -> &str {
        self.id.strip_prefix(METRIC_PREFIX).unwrap_or(&self.id)
    }

    fn finite_points(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        self.series.iter().flat_map(|line| line.points.iter().chain(&line.background)).copied().filter(is_finite)
    }

    /// Returns the whole range of the x axis, and whether it is logarithmic; none if there is nothing to draw.
    pub fn extent(&self) -> Option<(AxisRange, bool)> {
        let ends = self.span.into_iter().flat_map(|span| [span.low, span.high]);
        let positions = self.finite_points().map(|(x, _)| x).chain(ends).collect::<Vec<_>>();
        let above_zero = AxisRange::enclosing(positions.iter().copied().filter(|x| *x > 0.0));
        match above_zero.filter(|range| self.is_log_x && range.low > 0.0) {
            Some(range) => Some((range, true)),
            None => Some((AxisRange::enclosing(positions.into_iter())?, false)),
        }
    }

    /// Returns the ranges of the axes; none if there is nothing to draw.
    pub fn plot(&self) -> Option<Plot> {
        let (extent, is_log_x) = self.extent()?;
        let zoom =
            self.zoom.map(|zoom| AxisRange { low: if is_log_x { zoom.low.max(extent.low) } else { zoom.low }, ..zoom });
        let x = zoom.filter(|zoom| zoom.low < zoom.high).unwrap_or(extent);
        let is_visible = |(position, _): &(f64, f64)| (x.low..=x.high).contains(position);
        let mut values: Vec<f64> = self.finite_points().filter(is_visible).map(|(_, y)| y).collect();
        if values.is_empty() {
            values = self.finite_points().map(|(_, y)| y).collect();
        }
        let above_zero = AxisRange::enclosing(values.iter().copied().filter(|y| *y > 0.0));
        let above_zero = above_zero.filter(|range| self.is_log && range.low > 0.0);
        let is_log = above_zero.is_some();
        let y = above_zero.or_else(|| AxisRange::enclosing(values.into_iter()))?;
        let top = self.min_top.unwrap_or(y.high).max(y.high);
        let y = match self.unit {
            ValueUnit::Percent => AxisRange { low: 0.0, high: 100.0 },
            ValueUnit::Count | ValueUnit::Gigabytes | ValueUnit::Watts if !is_log => {
                AxisRange { low: 0.0, high: top.max(f64::MIN_POSITIVE) }
            }
            ValueUnit::Celsius => AxisRange { low: y.low.min(y.high - 10.0), high: y.high },
            _ => y,
        };
        let is_possible = |end: &f64| !is_log || *end > 0.0;
        let limits =
            YLimits { low: self.y_limits.low.filter(is_possible), high: self.y_limits.high.filter(is_possible) };
        Some(Plot { x, y: limits.apply(y), is_log, is_log_x })
    }

    /// Returns whether a logarithmic axis leaves out values.
    pub fn leaves_out(&self, plot: Plot) -> bool {
        let is_left_out = |(x, y): &(f64, f64)| plot.is_log && *y <= 0.0 || plot.is_log_x && *x <= 0.0;
        self.series.iter().flat_map(|line| line.points.iter().chain(&line.background)).any(is_left_out)
    }

    /// Returns the number of values that are not finite.
    pub fn not_finite(&self) -> u64 {
        self.series.iter().flat_map(|line| &line.gaps).map(|gap| gap.values).sum()
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
    pub const EMPTY: Self = Self {
        x: AxisRange { low: 0.0, high: 1.0 },
        y: AxisRange { low: 0.0, high: 1.0 },
        is_log: false,
        is_log_x: false,
    };

    /// Returns where a position is on the visible part of the x axis, from 0 to 1.
    pub fn x_fraction(self, x: f64) -> f64 {
        if self.is_log_x { log_fraction(self.x, x) } else { self.x.fraction(x) }
    }

    /// Returns the position at a fraction of the visible part of the x axis.
    pub fn x_at(self, fraction: f64) -> f64 {
        let AxisRange { low, high } = self.x;
        if self.is_log_x { low * (high / low).powf(fraction) } else { low + (high - low) * fraction }
    }

    /// Projects a point onto a plot area.
    pub fn project(self, frame: PlotArea, (x, y): (f64, f64)) -> (f64, f64) {
        let fraction = if self.is_log { log_fraction(self.y, y) } else { self.y.fraction(y) };
        (frame.left + frame.width * self.x_fraction(x), frame.top + frame.height * (1.0 - fraction))
    }

    /// Returns the `d` attribute of a line, as far as the x axis and its width beside both of its ends.
    pub fn path(self, frame: PlotArea, points: &[(f64, f64)]) -> String {
        let is_near = |(x, _): &(f64, f64)| (-1.0..=2.0).contains(&self.x_fraction(*x));
        let Some(first) = points.iter().position(is_near) else { return self.crossing_path(frame, points) };
        let last = points.iter().rposition(is_near).unwrap_or(first);
        let near = &points[first.saturating_sub(1)..(last + 2).min(points.len())];
        svg_path(near.iter().map(|point| self.project(frame, *point)))
    }

    /// The line between two points on both sides of the visible part, if there is none within.
    fn crossing_path(self, frame: PlotArea, points: &[(f64, f64)]) -> String {
        let crosses = |pair: &&[(f64, f64)]| pair[0].0 < self.x.low && pair[1].0 > self.x.high;
        let pair = points.windows(2).find(crosses).unwrap_or_default();
        svg_path(pair.iter().map(|point| self.project(frame, *point)))
    }

    /// Returns the point of a line that is nearest to a position, unless it is more than 2 % of the x axis away.
    pub fn value_at(self, line: &ChartSeries, at: f64) -> Option<(f64, f64)> {
        let finite = line.points.iter().filter(|(_, y)| y.is_finite());
        let nearest = finite.min_by(|a, b| (a.0 - at).abs().total_cmp(&(b.0 - at).abs()))?;
        let distance = (self.x_fraction(nearest.0) - self.x_fraction(at)).abs();
        (distance <= 0.02).then_some(*nearest)
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
    use proptest::prelude::*;

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
    }

    #[test]
    fn a_log_axis_leaves_out_what_it_cannot_show() {
        let plotted = |points: &[(f64, f64)]| {
            let chart = Chart { is_log: true, is_log_x: true, ..chart(ValueUnit::Plain, points) };
            let plot = chart.plot().unwrap();
            (plot.is_log, plot.is_log_x, chart.leaves_out(plot), plot.path(FRAME, &chart.series[0].points))
        };
        let (is_log, is_log_x, leaves_out, path) = plotted(&[(0.0, 5.0), (1.0, 1.0), (10.0, 0.0), (100.0, 100.0)]);
        assert_eq!((is_log, is_log_x, leaves_out), (true, true, true));
        assert_eq!(path, "M10.0 55.0h0M110.0 5.0h0");
        let (is_log, is_log_x, leaves_out, _) = plotted(&[(-1.0, -1.0), (0.0, 0.0)]);
        assert_eq!((is_log, is_log_x, leaves_out), (false, false, false), "nothing would remain");
    }

    #[test]
    fn a_zoomed_chart_fits_its_visible_values() {
        let points = [(0.0, 9.0), (10.0, 2.0), (20.0, 1.0), (30.0, 0.0)];
        let zoomed = |low, high| {
            let zoom = Some(AxisRange { low, high });
            Chart { zoom, ..chart(ValueUnit::Plain, &points) }.plot().unwrap()
        };
        let plot = zoomed(5.0, 25.0);
        assert_eq!((plot.x, plot.y), (AxisRange { low: 5.0, high: 25.0 }, AxisRange { low: 1.0, high: 2.0 }));
        assert_eq!(zoomed(11.0, 12.0).y, AxisRange { low: 0.0, high: 9.0 }, "without a point, all values");
        assert!(zoomed(14.0, 15.0).path(FRAME, &points).starts_with("M-390.0"), "a line crosses it");
        assert_eq!(zoomed(40.0, 50.0).path(FRAME, &points), "M-190.0 49.4h0L-90.0 55.0", "beside it, for a move");
        let limited = Chart { y_limits: YLimits { low: Some(-1.0), high: None }, ..chart(ValueUnit::Plain, &points) };
        assert_eq!(limited.plot().unwrap().y, AxisRange { low: -1.0, high: 9.0 });
    }

    proptest! {
        #[test]
        fn fractions_of_the_x_axis_are_positions(low in 1e-3..1e6_f64, width in 1e-3..1e6_f64, fraction in -1.0..2.0_f64, is_log_x: bool) {
            let x = AxisRange { low, high: low + width };
            let plot = Plot { x, is_log_x, ..Plot::EMPTY };
            prop_assert!((plot.x_fraction(plot.x_at(fraction)) - fraction).abs() < 1e-4);
        }
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
