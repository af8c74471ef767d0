//! Charts of GPU readings on the x axis of the metrics.

use super::{XScale, possible};
use crate::protocol::gpus::history::{GpuHistory, JobMetrics, MetricSeries};
use crate::ui::axis::AxisRange;
use crate::ui::components::chart::data::{Chart, ChartSeries};
use crate::ui::components::chart::options::ChartOptions;
use crate::ui::components::gpu_charts::sensor_charts;
use crate::ui::format::to_f64;

/// Returns a chart for each sensor, with the readings between the first and the last point of the metrics. `span` is the x
/// axis of their charts.
pub(crate) fn system_charts(
    history: &GpuHistory,
    metrics: &JobMetrics,
    options: &ChartOptions,
    span: Option<AxisRange>,
) -> Vec<Chart> {
    let options = possible(options, [metrics].into_iter());
    let longest = metrics.metrics.iter().max_by_key(|series| series.seconds.len());
    let scale = XScale::new(metrics, options.horizontal);
    let (Some(from), Some(longest), Some(scale)) = (metrics.from, longest, scale) else { return Vec::new() };
    let from = to_f64(from.0.max(0).unsigned_abs()) / 1_000.0;
    let position = |(at, value): &(f64, f64)| Some((scale.position_of_time(at - from, longest)?, *value));
    let place = |points: &[(f64, f64)]| points.iter().filter_map(position).collect::<Vec<_>>();
    let line =
        |line: ChartSeries| ChartSeries { points: place(&line.points), background: place(&line.background), ..line };
    let chart = |chart: Chart| Chart {
        axis: options.horizontal.axis(),
        span,
        is_log_x: options.has_log_x,
        zoom: options.zoom,
        y_limits: options.y_limits.get(chart.metric()).copied().unwrap_or_default(),
        series: chart.series.into_iter().map(line).collect(),
        ..chart
    };
    let charts = sensor_charts(history).into_iter().map(chart);
    charts.filter(|chart| chart.series.iter().any(|line| !line.points.is_empty())).collect()
}

impl XScale<'_> {
    /// Returns the position of a time, in seconds after the first point; none before the first and after the last point of
    /// the series.
    fn position_of_time(self, second: f64, series: &MetricSeries) -> Option<f64> {
        let after = series.seconds.partition_point(|known| *known < second);
        let to = *series.seconds.get(after)?;
        let step = to_f64(*series.steps.get(after)?);
        let from = match after.checked_sub(1) {
            Some(before) => (series.seconds[before], to_f64(*series.steps.get(before)?)),
            None if to > second => return None,
            None => (to, step),
        };
        let part = if to > from.0 { (second - from.0) / (to - from.0) } else { 1.0 };
        Some(match self {
            Self::Time => second,
            Self::Steps => from.1 + (step - from.1) * part,
            Self::Epochs(epochs) => super::epoch_at(epochs, from.1 + (step - from.1) * part),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use crate::protocol::gpus::history::GpuSeries;
    use crate::ui::components::chart::data::Axis;
    use crate::ui::components::chart::options::Horizontal;

    fn metrics() -> JobMetrics {
        let series = |name: &str, values: Vec<f64>| MetricSeries {
            name: name.to_owned(),
            steps: vec![0, 10, 110],
            seconds: vec![0.0, 10.0, 30.0],
            values,
            ..MetricSeries::default()
        };
        JobMetrics {
            from: Some(Timestamp(100_000)),
            metrics: vec![series("loss", vec![3.0, 2.0, 1.0]), series("epoch", vec![0.0, 0.5, 1.0])],
            ..JobMetrics::default()
        }
    }

    /// Readings at 90, 100, … seconds, of which the first and the last are outside of the metrics.
    fn history() -> GpuHistory {
        let utilization_percent = (0_u32..6).map(|n| Some(f64::from(n))).collect();
        let gpus = vec![GpuSeries { utilization_percent, ..GpuSeries::default() }];
        GpuHistory { from: Timestamp(85_000), step_seconds: 10, gpus }
    }

    fn points(horizontal: Horizontal) -> Vec<(f64, f64)> {
        let options = ChartOptions { horizontal, ..ChartOptions::default() };
        let span = Some(AxisRange { low: 0.0, high: 110.0 });
        let charts = system_charts(&history(), &metrics(), &options, span);
        assert_eq!((charts.len(), charts[0].axis, charts[0].span), (1, horizontal.axis(), span));
        charts[0].series[0].points.clone()
    }

    #[test]
    fn readings_are_on_the_axis_of_the_metrics() {
        assert_eq!(points(Horizontal::Time), [(0.0, 1.0), (10.0, 2.0), (20.0, 3.0), (30.0, 4.0)]);
        assert_eq!(points(Horizontal::Steps), [(0.0, 1.0), (10.0, 2.0), (60.0, 3.0), (110.0, 4.0)]);
        assert_eq!(points(Horizontal::Epochs), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (1.0, 4.0)]);
    }

    #[test]
    fn without_points_or_readings_there_is_no_chart() {
        let charts = |history: &GpuHistory, metrics: &JobMetrics| {
            system_charts(history, metrics, &ChartOptions::default(), None).len()
        };
        assert_eq!(charts(&GpuHistory::default(), &metrics()), 0);
        assert_eq!(charts(&history(), &JobMetrics::default()), 0);
        let later = JobMetrics { from: Some(Timestamp(900_000)), ..metrics() };
        assert_eq!(charts(&history(), &later), 0, "the readings are too old");
        assert_eq!(Axis::default(), Horizontal::Steps.axis());
    }
}
