//! What the parallel coordinates of jobs show, as data: an axis per value of the configuration that differs, a last one
//! for a metric, and a line per job.

use serde_json::Value;

use super::super::final_metrics::final_text;
use super::super::{shown_text, value_text};
use crate::domain::best_metrics::{Better, better};
use crate::domain::job_comparison::best_values;
use crate::domain::parallel_axes::{AxisScale, AxisValue, ParallelAxis, best_separating};
use crate::protocol::jobs::compare::{ComparedConfigKey, JobComparison};
use crate::ui::axis::{AxisRange, log_ticks, ticks};
use crate::ui::components::chart::data::ValueUnit;
use crate::ui::components::metric_charts::metric_title;
use crate::ui::i18n::t;

/// The maximum number of distinct numbers of an axis that has a tick at each of them.
const MAX_NUMBERS: usize = 6;
/// The number of ticks of the other axes of numbers.
const TICKS: u32 = 4;
/// The smallest distance between two ticks, as a fraction of the axis: 20 categories are a bit further apart.
const MIN_DISTANCE: f64 = 0.05;
/// Where there is no value.
const NO_VALUE: &str = "–";

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ParallelPlot {
    /// None if there is nothing to draw.
    pub axes: Vec<PlotAxis>,
    pub lines: Vec<PlotLine>,
    /// The metric of the last axis.
    pub metric: String,
    /// The metrics that can be chosen.
    pub metrics: Vec<String>,
    /// The number of values that differ and have no axis.
    pub left_out: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlotAxis {
    pub title: String,
    pub is_logarithmic: bool,
    /// Their positions and texts, upward.
    pub ticks: Vec<(f64, String)>,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlotLine {
    pub name: String,
    /// Its value on each axis: the position, none if it has no value, and the text.
    pub values: Vec<(Option<f64>, String)>,
    /// Whether its metric is the best.
    pub is_best: bool,
}

impl ParallelPlot {
    /// The plot of these jobs; an empty one if no values of their configurations differ, the user may not see them, or no
    /// metric has a number. Instead of a metric that is unknown, it has the first one of which the best value is known.
    pub fn new(comparison: &JobComparison, names: &[String], wanted: Option<&str>) -> Self {
        let candidates =
            comparison.config.iter().flatten().filter(|key| key.differs).map(|key| (key, config_axis(key)));
        let (chosen, left_out) = best_separating(candidates.collect());
        let metrics = numeric_metrics(comparison);
        let Some(metric) = chosen_metric(&metrics, wanted).filter(|_| !chosen.is_empty()) else {
            return Self::default();
        };
        let mut columns: Vec<Column> = chosen.iter().map(|(key, axis)| Column::of_config(key, axis)).collect();
        columns.push(Column::of_metric(comparison, &metric));
        let best = best_values(&metric, &final_numbers(comparison, &metric));
        let line = |(job, (name, is_best)): (usize, (&String, bool))| PlotLine {
            name: name.clone(),
            values: columns.iter().filter_map(|column| column.values.get(job).cloned()).collect(),
            is_best,
        };
        let lines = names.iter().zip(best).enumerate().map(line).collect();
        Self { lines, axes: columns.into_iter().map(|column| column.axis).collect(), metric, metrics, left_out }
    }

    /// The axes, as a text alternative; the tables of the page have the values.
    pub fn describe(&self) -> String {
        let titles: Vec<&str> = self.axes.iter().map(|axis| axis.title.as_str()).collect();
        format!("{}: {}", t().compare.parallel, titles.join(", "))
    }

    /// The values of a job.
    pub fn describe_line(&self, number: usize) -> String {
        let Some(line) = self.lines.get(number) else { return String::new() };
        let value = |(axis, (_, text)): (&PlotAxis, &(Option<f64>, String))| format!("{} {text}", axis.title);
        let values: Vec<String> = self.axes.iter().zip(&line.values).map(value).collect();
        format!("{}: {}", line.name, values.join(", "))
    }

    /// Says which values of the metric are better, if its name tells.
    pub fn better_values(&self) -> Option<&'static str> {
        let words = &t().compare;
        better(&self.metric).map(|better| match better {
            Better::Lower => words.lower_is_better,
            Better::Higher => words.higher_is_better,
        })
    }

    /// Whether a job has no value on an axis.
    pub fn has_gaps(&self) -> bool {
        self.lines.iter().flat_map(|line| &line.values).any(|(position, _)| position.is_none())
    }
}

/// An axis with the value of each job.
struct Column {
    axis: PlotAxis,
    values: Vec<(Option<f64>, String)>,
}

impl Column {
    fn of_config(key: &ComparedConfigKey, axis: &ParallelAxis) -> Self {
        let text = |value: &Option<Value>| {
            value.as_ref().map_or_else(|| NO_VALUE.to_owned(), |value| shown_text(&value_text(value)))
        };
        Self::new(shown_text(&key.key), axis, key.values.iter().map(text), |value| shown_text(&value.text))
    }

    fn of_metric(comparison: &JobComparison, metric: &str) -> Self {
        let number = |number: &Option<f64>| number.map(|number| AxisValue::new(number.to_string()));
        let axis = ParallelAxis::new(&final_numbers(comparison, metric).iter().map(number).collect::<Vec<_>>());
        let texts = comparison.jobs.iter().map(|job| final_text(job.final_value(metric)));
        let tick = |value: &AxisValue| value.number.map(|number| t().format_number(number)).unwrap_or_default();
        Self::new(shown_text(&metric_title(metric)), &axis, texts, tick)
    }

    fn new(
        title: String,
        axis: &ParallelAxis,
        texts: impl Iterator<Item = String>,
        tick: impl Fn(&AxisValue) -> String,
    ) -> Self {
        let values = axis.positions.iter().copied().zip(texts).collect();
        let is_logarithmic = axis.scale == AxisScale::Logarithmic;
        Self { axis: PlotAxis { title, is_logarithmic, ticks: axis_ticks(axis, tick) }, values }
    }
}

fn config_axis(key: &ComparedConfigKey) -> ParallelAxis {
    let value = |value: &Option<Value>| value.as_ref().map(|value| AxisValue::new(value_text(value)));
    ParallelAxis::new(&key.values.iter().map(value).collect::<Vec<_>>())
}

/// The metrics of which at least one job has a number.
fn numeric_metrics(comparison: &JobComparison) -> Vec<String> {
    let has_number = |name: &String| final_numbers(comparison, name).iter().any(Option::is_some);
    comparison.metric_names().into_iter().filter(has_number).collect()
}

fn final_numbers(comparison: &JobComparison, metric: &str) -> Vec<Option<f64>> {
    comparison.jobs.iter().map(|job| job.final_value(metric).number().filter(|number| number.is_finite())).collect()
}

fn chosen_metric(metrics: &[String], wanted: Option<&str>) -> Option<String> {
    let chosen = metrics.iter().find(|name| Some(name.as_str()) == wanted);
    chosen.or_else(|| metrics.iter().find(|name| better(name).is_some())).or(metrics.first()).cloned()
}

fn axis_ticks(axis: &ParallelAxis, text: impl Fn(&AxisValue) -> String) -> Vec<(f64, String)> {
    if axis.scale == AxisScale::Categories || axis.values.len() <= MAX_NUMBERS {
        return with_distance(axis.values.iter().map(|(position, value)| (*position, text(value))).collect());
    }
    let range = AxisRange { low: axis.ends.0, high: axis.ends.1 };
    let numbers = if axis.scale == AxisScale::Logarithmic { log_ticks(range) } else { ticks(range, TICKS) };
    let tick = |number: f64| (axis.position_of(number), ValueUnit::Plain.format_tick(number));
    with_distance(numbers.into_iter().map(tick).collect())
}

/// Removes ticks that are too near to the one below or to the last one.
fn with_distance(ticks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let Some(top) = ticks.last().map(|(position, _)| *position) else { return ticks };
    let mut distant: Vec<(f64, String)> = Vec::new();
    for (position, text) in ticks {
        let is_distant = distant.last().is_none_or(|(below, _)| position - below >= MIN_DISTANCE);
        if is_distant && (position >= top || top - position >= MIN_DISTANCE) {
            distant.push((position, text));
        }
    }
    distant
}

#[cfg(test)]
mod tests;
