//! Charts of the metrics of trainers, as pure functions of the metrics and of how they are drawn.

pub(crate) mod system;

use super::chart::data::{Chart, ChartSeries, Gap, METRIC_PREFIX, ValueUnit};
use super::chart::options::{ChartOptions, Horizontal};
use crate::protocol::gpus::history::{JobMetrics, MetricSeries};
use crate::ui::axis::{AxisRange, smooth};
use crate::ui::format::to_f64;
use crate::ui::i18n::t;

/// Metrics that are smooth already, or whose steps have a meaning.
const UNSMOOTHED: [&str; 3] = ["learning_rate", "epoch", "steps_per_second"];

const EPOCH: &str = "epoch";

/// What a metric is called.
pub(crate) fn metric_title(name: &str) -> String {
    match name {
        "loss" => t().job.loss.to_owned(),
        "learning_rate" => t().job.learning_rate.to_owned(),
        EPOCH => t().job.epoch.to_owned(),
        "steps_per_second" => t().charts.throughput.to_owned(),
        name => name.to_owned(),
    }
}

/// Returns whether the metrics say at which step an epoch was.
pub(crate) fn has_epochs(metrics: &JobMetrics) -> bool {
    metrics.metrics.iter().any(|series| series.name == EPOCH)
}

/// Where the points of an attempt are on the x axis.
#[derive(Clone, Copy)]
enum XScale<'a> {
    Steps,
    Time,
    /// By the epochs at some of the steps.
    Epochs(&'a MetricSeries),
}

impl<'a> XScale<'a> {
    /// Returns none if the attempt has no epochs.
    fn new(metrics: &'a JobMetrics, horizontal: Horizontal) -> Option<Self> {
        match horizontal {
            Horizontal::Steps => Some(Self::Steps),
            Horizontal::Time => Some(Self::Time),
            Horizontal::Epochs => metrics.metrics.iter().find(|series| series.name == EPOCH).map(Self::Epochs),
        }
    }

    fn position(self, step: u64, second: f64) -> f64 {
        match self {
            Self::Steps => to_f64(step),
            Self::Time => second,
            Self::Epochs(epochs) => epoch_at(epochs, to_f64(step)),
        }
    }

    fn positions(self, series: &MetricSeries) -> Vec<f64> {
        series.steps.iter().zip(&series.seconds).map(|(step, second)| self.position(*step, *second)).collect()
    }
}

/// Returns the epoch of a step, between those that are known.
fn epoch_at(epochs: &MetricSeries, step: f64) -> f64 {
    let after = epochs.steps.partition_point(|known| to_f64(*known) < step);
    let point = |index: usize| Some((to_f64(*epochs.steps.get(index)?), *epochs.values.get(index)?));
    match (after.checked_sub(1).and_then(point), point(after)) {
        (Some((from, low)), Some((to, high))) if to > from => low + (high - low) * (step - from) / (to - from),
        (_, Some((_, epoch))) | (Some((_, epoch)), None) => epoch,
        (None, None) => f64::NAN,
    }
}

/// Returns the points of a line, interrupted where values are not finite.
fn interrupted(positions: &[f64], values: &[f64], gaps: &[Gap]) -> Vec<(f64, f64)> {
    let finite = positions.iter().copied().zip(values.iter().copied()).filter(|(x, _)| x.is_finite());
    let mut points: Vec<(f64, f64)> = finite.chain(gaps.iter().map(|gap| (gap.from, f64::NAN))).collect();
    if !gaps.is_empty() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    points
}

fn is_smoothed(name: &str, options: &ChartOptions) -> bool {
    options.smoothing.is_on() && !UNSMOOTHED.contains(&name)
}

/// Returns the line of a metric; an empty one if it has no positions on the x axis.
fn metric_line(metrics: &JobMetrics, series: &MetricSeries, options: &ChartOptions) -> ChartSeries {
    let Some(scale) = XScale::new(metrics, options.horizontal) else { return ChartSeries::default() };
    let positions = scale.positions(series);
    let gap = |gap: &crate::protocol::gpus::history::MetricGap| Gap {
        from: scale.position(gap.first_step, gap.first_second),
        to: scale.position(gap.last_step, gap.last_second),
        values: gap.values,
    };
    let gaps: Vec<Gap> = series.gaps.iter().map(gap).collect();
    let raw = interrupted(&positions, &series.values, &gaps);
    if is_smoothed(&series.name, options) {
        let smoothed = smooth(&series.values, options.smoothing.weight());
        ChartSeries {
            points: interrupted(&positions, &smoothed, &gaps),
            background: raw,
            gaps,
            ..ChartSeries::default()
        }
    } else {
        ChartSeries { points: raw, gaps, ..ChartSeries::default() }
    }
}

/// Returns the chart of a metric, without lines.
fn metric_plot(name: &str, options: &ChartOptions) -> Chart {
    Chart {
        id: format!("{METRIC_PREFIX}{name}"),
        title: metric_title(name),
        unit: if name == "steps_per_second" { ValueUnit::Count } else { ValueUnit::Plain },
        axis: options.horizontal.axis(),
        is_log: options.has_log_y && ![EPOCH, "steps_per_second"].contains(&name),
        is_log_x: options.has_log_x,
        zoom: options.zoom,
        y_limits: options.y_limits.get(name).copied().unwrap_or_default(),
        note: is_smoothed(name, options).then(|| t().charts.smoothed.of(options.smoothing.weight())),
        ..Chart::default()
    }
}

/// Returns the options without an axis of epochs if no metrics have any.
fn possible<'a>(options: &ChartOptions, mut all: impl Iterator<Item = &'a JobMetrics>) -> ChartOptions {
    let lacks_epochs = options.horizontal == Horizontal::Epochs && !all.any(has_epochs);
    ChartOptions { horizontal: if lacks_epochs { Horizontal::Steps } else { options.horizontal }, ..options.clone() }
}

/// Returns one chart for each metric; the loss is the first metric. The x axes of all are the same.
pub(crate) fn metric_charts(metrics: &JobMetrics, options: &ChartOptions) -> Vec<Chart> {
    let options = possible(options, [metrics].into_iter());
    let chart = |series: &MetricSeries| Chart {
        series: vec![metric_line(metrics, series, &options)],
        ..metric_plot(&series.name, &options)
    };
    with_same_axis(metrics.metrics.iter().map(chart).collect())
}

/// Returns one chart for each of these metrics, with a line for each run: its name, and its metrics. A run without
/// metrics keeps its place, so that the others keep their colors.
pub(crate) fn overlaid_charts(
    names: &[String],
    runs: &[(String, Option<&JobMetrics>)],
    options: &ChartOptions,
) -> Vec<Chart> {
    let options = possible(options, runs.iter().filter_map(|(_, metrics)| *metrics));
    let chart = |name: &String| {
        let line = |(run, metrics): &(String, Option<&JobMetrics>)| {
            let found = metrics.and_then(|all| Some((all, all.metrics.iter().find(|series| series.name == *name)?)));
            let line = found.map(|(all, series)| metric_line(all, series, &options)).unwrap_or_default();
            // Values before smoothing would cover other lines.
            ChartSeries { name: run.clone(), background: Vec::new(), ..line }
        };
        Chart { series: runs.iter().map(line).collect(), ..metric_plot(name, &options) }
    };
    with_same_axis(names.iter().map(chart).collect())
}

/// Returns the names of all metrics, in the order of the first attempt that has each.
pub(crate) fn metric_names<'a>(attempts: impl Iterator<Item = &'a JobMetrics>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for series in attempts.flat_map(|metrics| &metrics.metrics) {
        if !names.contains(&series.name) {
            names.push(series.name.clone());
        }
    }
    names
}

/// Gives all charts the x axis that covers all of them, and where values are not finite.
fn with_same_axis(mut charts: Vec<Chart>) -> Vec<Chart> {
    let lines = charts.iter().flat_map(|chart| &chart.series);
    let ends = lines.flat_map(|line| {
        let ends = line.points.first().into_iter().chain(line.points.last()).map(|(x, _)| *x);
        ends.chain(line.gaps.iter().flat_map(|gap| [gap.from, gap.to])).collect::<Vec<_>>()
    });
    let span = AxisRange::enclosing(ends);
    for chart in &mut charts {
        chart.span = span;
    }
    charts
}

/// Returns the steps of the visible part, with one more on both sides; none if all are visible.
pub(crate) fn zoomed_steps(metrics: &JobMetrics, options: &ChartOptions) -> Option<(u64, u64)> {
    let options = possible(options, [metrics].into_iter());
    let zoom = options.zoom?;
    let longest = metrics.metrics.iter().max_by_key(|series| series.steps.len())?;
    let positions = XScale::new(metrics, options.horizontal)?.positions(longest);
    let first = positions.iter().position(|x| *x >= zoom.low)?.saturating_sub(1);
    let last = (positions.iter().rposition(|x| *x <= zoom.high)? + 1).min(positions.len() - 1);
    (first <= last).then(|| (longest.steps[first], longest.steps[last]))
}

/// Returns the metrics with those of a part, which has more points, in the place of theirs.
pub(crate) fn refined(all: &JobMetrics, part: &JobMetrics) -> JobMetrics {
    let refine = |series: &MetricSeries| {
        let found = part.metrics.iter().find(|finer| finer.name == series.name && all.attempt == part.attempt);
        let Some((finer, (first, last))) = found.and_then(|finer| Some((finer, step_range(finer)?))) else {
            return series.clone();
        };
        let before = series.steps.partition_point(|step| *step < first);
        let after = series.steps.partition_point(|step| *step <= last);
        MetricSeries {
            name: series.name.clone(),
            steps: splice(&series.steps, before, &finer.steps, after),
            seconds: splice(&series.seconds, before, &finer.seconds, after),
            values: splice(&series.values, before, &finer.values, after),
            gaps: series.gaps.clone(),
        }
    };
    JobMetrics { metrics: all.metrics.iter().map(refine).collect(), ..all.clone() }
}

/// Replaces the part of a list between two indices.
fn splice<T: Clone>(all: &[T], before: usize, finer: &[T], after: usize) -> Vec<T> {
    [&all[..before], finer, &all[after..]].concat()
}

fn step_range(series: &MetricSeries) -> Option<(u64, u64)> {
    Some((*series.steps.first()?, *series.steps.last()?))
}

#[cfg(test)]
mod tests;
