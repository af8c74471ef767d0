//! Charts of a job's metrics: four on its overview, and all of them, grouped by the prefixes of their names.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::action::MoreLink;
use super::chart::data::{Axis, Chart, ChartSeries, ValueUnit};
use super::chart::switch::Switch;
use super::chart::{ChartGroup, ChartView, QUARTER, SMALL, WIDE, chart_ids, nth_chart};
use super::problem_panel::ProblemPanel;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::gpus::history::{JobMetrics, MetricSeries};
use crate::ui::axis::{AxisRange, smooth};
use crate::ui::backend::use_backend;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;
use crate::ui::job_feed::use_job_feed;
use crate::ui::view_scope::ViewScope;

/// The weights of previous values in smoothing, with their values in the URL; the first is the default.
const SMOOTHING_OPTIONS: [(&str, f64); 3] = [("0.92", 0.92), ("0.6", 0.6), ("0", 0.0)];

/// How charts are drawn, as chosen in the URL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChartOptions {
    pub is_log: bool,
    pub by_time: bool,
    pub smoothing: f64,
}

impl ChartOptions {
    /// Returns those of the page, which change with its URL.
    pub fn of_page() -> Memo<Self> {
        let query = use_query_map();
        Memo::new(move |_| {
            query.with(|query| Self {
                is_log: query.get_str("scale") == Some("log"),
                by_time: query.get_str("x") == Some("time"),
                smoothing: smoothing_weight(query.get_str("smooth")),
            })
        })
    }
}

/// Returns the weight for a value in the URL; the default if it is missing or unknown.
fn smoothing_weight(choice: Option<&str>) -> f64 {
    SMOOTHING_OPTIONS.iter().find(|(value, _)| Some(*value) == choice).unwrap_or(&SMOOTHING_OPTIONS[0]).1
}

/// The ID of a chart is this and the name of its metric.
const CHART_ID_PREFIX: &str = "metric-";

/// Metrics that are smooth already, or whose steps have a meaning.
const UNSMOOTHED: [&str; 3] = ["learning_rate", "epoch", "steps_per_second"];

/// The maximum number of charts on the overview.
const MAX_ON_OVERVIEW: usize = 4;

/// Which charts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartScope {
    /// The main metrics, if there are any.
    Overview,
    /// All metrics; the text is shown if there are none.
    All(Signal<&'static str>),
}

/// The charts of the attempt in the URL (`?attempt=`), or of the newest one.
#[component]
pub(crate) fn JobCharts(id: JobId, scope: ChartScope) -> impl IntoView {
    let (backend, feed) = (use_backend(), use_job_feed());
    let query = use_query_map();
    let attempt =
        Memo::new(move |_| query.with(|query| query.get("attempt")).and_then(|n| n.parse().ok()).map(AttemptNumber));
    let group = ChartGroup::new();
    let job_id = id.clone();
    let metrics = Resource::new(move || attempt.get(), move |attempt| backend.job_metrics(job_id.clone(), attempt));
    let view_scope = ViewScope::current();
    let content = move || {
        let (view_scope, id) = (view_scope.clone(), id.clone());
        Suspend::new(async move {
            match metrics.await {
                Ok(first) => view_scope.render(|| {
                    let now = RwSignal::new(first);
                    feed.attempt.set_value(attempt.get_untracked());
                    feed.metrics.set_value(Some(now));
                    match scope {
                        ChartScope::Overview => view! { <MainCharts id=id now=now group=group/> }.into_erased(),
                        ChartScope::All(empty) => view! { <AllCharts now=now group=group empty=empty/> }.into_erased(),
                    }
                }),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{content}</Transition> }.into_erased()
}

/// Returns all charts, drawn as chosen in the URL.
fn charts_of(now: RwSignal<JobMetrics>) -> Memo<Vec<Chart>> {
    let options = ChartOptions::of_page();
    Memo::new(move |_| now.with(|now| metric_charts(now, options.get())))
}

fn nan_note(now: RwSignal<JobMetrics>) -> impl Fn() -> Option<AnyView> {
    let nan_since = Memo::new(move |_| now.with(|now| now.loss_nan_since));
    move || {
        nan_since.get().map(|step| view! { <p class="panel-note" data-test="nan">{nan_text(step)}</p> }.into_erased())
    }
}

/// The charts of the main metrics, two in a row; nothing if there are none.
#[component]
fn MainCharts(id: JobId, now: RwSignal<JobMetrics>, group: ChartGroup) -> impl IntoView {
    let words = &t().charts;
    let all = charts_of(now);
    let charts = Memo::new(move |_| all.with(|all| main_charts(all)));
    let ids = chart_ids(charts);
    move || {
        let count = ids.with(Vec::len);
        if count == 0 {
            return ().into_erased();
        }
        let views =
            (0..count).map(|index| view! { <ChartView chart=nth_chart(charts, index) group=group sizes=QUARTER/> });
        view! {
            <section class="panel" aria-labelledby="metrics">
                <div class="panel-head">
                    <h2 id="metrics">{words.metrics}</h2>
                    <MoreLink href=format!("/jobs/{id}?show=charts") label=words.all/>
                </div>
                <div class="charts">
                    {nan_note(now)}
                    <div class="chart-quarters">{views.collect_view()}</div>
                </div>
            </section>
        }
        .into_erased()
    }
}

#[component]
fn AllCharts(now: RwSignal<JobMetrics>, group: ChartGroup, empty: Signal<&'static str>) -> impl IntoView {
    let words = &t().charts;
    let charts = charts_of(now);
    let ids = chart_ids(charts);
    let kept_every = Memo::new(move |_| now.with(|now| now.kept_every));
    let thinning_note = move || {
        let interval = kept_every.get()?;
        Some(view! { <p class="panel-note" data-test="thinned">{words.kept_every.of(interval)}</p> })
    };
    let small = move |indices: &[usize]| {
        let views =
            indices.iter().map(|index| view! { <ChartView chart=nth_chart(charts, *index) group=group sizes=SMALL/> });
        view! { <div class="chart-grid">{views.collect_view()}</div> }.into_erased()
    };
    let charts_view = move || {
        let groups = ids.with(|ids| group_by_prefix(ids));
        if groups.is_empty() {
            return view! { <p class="panel-empty">{empty}</p> }.into_erased();
        }
        let groups = groups.into_iter().map(|(prefix, indices)| match (prefix, indices.as_slice()) {
            (None, [first, others @ ..]) => view! {
                <ChartView chart=nth_chart(charts, *first) group=group sizes=WIDE/>
                {nan_note(now)}
                {small(others)}
            }
            .into_erased(),
            (prefix, indices) => view! {
                <h3 class="chart-prefix"><bdi>{prefix}</bdi></h3>
                {small(indices)}
            }
            .into_erased(),
        });
        view! { {groups.collect_view()} {thinning_note} }.into_erased()
    };
    view! {
        <section class="panel" aria-labelledby="metrics">
            <div class="panel-head">
                <h2 id="metrics">{words.metrics}</h2>
                <ChartSwitches/>
            </div>
            <div class="charts">{charts_view}</div>
        </section>
    }
    .into_erased()
}

/// Links that choose how the charts of the panel `metrics` are drawn.
#[component]
pub(crate) fn ChartSwitches() -> impl IntoView {
    let words = &t().charts;
    view! {
        <Switch label=words.over key="x" panel="metrics" choices=vec![(None, words.by_step), (Some("time"), words.by_time)]/>
        <Switch label=words.smoothing has_label=true key="smooth" panel="metrics" choices=vec![(None, "0.92"), (Some("0.6"), "0.6"), (Some("0"), "0")]/>
        <Switch label=words.scale key="scale" panel="metrics" choices=vec![(None, words.linear), (Some("log"), words.log)]/>
    }
    .into_erased()
}

/// Returns the charts of the overview. The epoch and the throughput come last, because they say little about a training.
fn main_charts(all: &[Chart]) -> Vec<Chart> {
    let is_minor = |chart: &&Chart| ["metric-epoch", "metric-steps_per_second"].contains(&chart.id.as_str());
    let (minor, major): (Vec<_>, Vec<_>) = all.iter().partition(is_minor);
    major.into_iter().chain(minor).take(MAX_ON_OVERVIEW).cloned().collect()
}

/// Returns the charts in groups by the prefixes of their metrics, such as `val` of `val/loss`, in the order of their first
/// metrics; those without a prefix come first.
fn group_by_prefix(ids: &[String]) -> Vec<(Option<String>, Vec<usize>)> {
    let mut groups: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        let name = id.strip_prefix(CHART_ID_PREFIX).unwrap_or(id);
        let prefix = name.rsplit_once('/').map(|(prefix, _)| prefix.to_owned());
        match groups.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((prefix, vec![index])),
        }
    }
    groups.sort_by_key(|(prefix, _)| prefix.is_some());
    groups
}

/// Returns the sentence that the loss has been NaN since a step.
pub(crate) fn nan_text(step: u64) -> String {
    t().charts.nan_since.of(t().format_integer(step))
}

/// Returns one chart for each metric; the loss is the first metric.
fn metric_charts(metrics: &JobMetrics, options: ChartOptions) -> Vec<Chart> {
    metrics.metrics.iter().map(|series| metric_chart(metrics, series, options)).collect()
}

fn x_values(series: &MetricSeries, by_time: bool) -> Vec<f64> {
    if by_time { series.seconds.clone() } else { series.steps.iter().map(|step| to_f64(*step)).collect() }
}

/// Returns what a metric is called.
pub(crate) fn metric_title(name: &str) -> String {
    match name {
        "loss" => t().job.loss.to_owned(),
        "learning_rate" => t().job.learning_rate.to_owned(),
        "epoch" => t().job.epoch.to_owned(),
        "steps_per_second" => t().charts.throughput.to_owned(),
        name => name.to_owned(),
    }
}

fn is_smoothed(name: &str, options: ChartOptions) -> bool {
    options.smoothing > 0.0 && !UNSMOOTHED.contains(&name)
}

/// Returns the line of a metric.
pub(crate) fn metric_line(series: &MetricSeries, options: ChartOptions) -> ChartSeries {
    let positions = x_values(series, options.by_time);
    let points = |values: &[f64]| positions.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    if is_smoothed(&series.name, options) {
        let smoothed = smooth(&series.values, options.smoothing);
        ChartSeries { points: points(&smoothed), background: points(&series.values), ..ChartSeries::default() }
    } else {
        ChartSeries { points: points(&series.values), ..ChartSeries::default() }
    }
}

/// Returns the chart of a metric, without lines.
pub(crate) fn metric_plot(name: &str, options: ChartOptions) -> Chart {
    Chart {
        id: format!("{CHART_ID_PREFIX}{name}"),
        title: metric_title(name),
        unit: if name == "steps_per_second" { ValueUnit::Count } else { ValueUnit::Plain },
        axis: if options.by_time { Axis::Elapsed } else { Axis::Steps },
        is_log: options.is_log && !["epoch", "steps_per_second"].contains(&name),
        note: is_smoothed(name, options).then(|| t().charts.smoothed.of(options.smoothing)),
        ..Chart::default()
    }
}

fn metric_chart(metrics: &JobMetrics, series: &MetricSeries, options: ChartOptions) -> Chart {
    let positions_of = |series| x_values(series, options.by_time);
    let positions = positions_of(series);
    // The axis covers all metrics, so that it shows where the loss ends.
    let is_nan = series.name == "loss" && metrics.loss_nan_since.is_some();
    let nan_mark = positions.last().copied().filter(|_| is_nan);
    let span = if is_nan { AxisRange::enclosing(metrics.metrics.iter().flat_map(positions_of)) } else { None };
    Chart { span, nan_mark, series: vec![metric_line(series, options)], ..metric_plot(&series.name, options) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT_OPTIONS: ChartOptions = ChartOptions { is_log: false, by_time: false, smoothing: 0.92 };

    fn metrics() -> JobMetrics {
        let series = |name: &str| MetricSeries {
            name: name.to_owned(),
            steps: vec![1, 5],
            seconds: vec![0.0, 2.5],
            values: vec![2.0, 1.0],
        };
        JobMetrics {
            metrics: vec![series("loss"), series("learning_rate"), series("<b>own</b>")],
            ..JobMetrics::default()
        }
    }

    #[test]
    fn every_number_has_a_chart_over_steps_or_time() {
        let titles: Vec<_> = metric_charts(&metrics(), DEFAULT_OPTIONS).into_iter().map(|chart| chart.title).collect();
        assert_eq!(titles, ["Loss", "Learning rate", "<b>own</b>"]);
        let xs = |by_time: bool| {
            metric_charts(&metrics(), ChartOptions { by_time, ..DEFAULT_OPTIONS })[1].series[0].points.clone()
        };
        assert_eq!((xs(false), xs(true)), (vec![(1.0, 2.0), (5.0, 1.0)], vec![(0.0, 2.0), (2.5, 1.0)]));
    }

    #[test]
    fn overview_has_four_charts_and_the_loss_first() {
        let charts = |names: &[&str]| -> Vec<Chart> {
            names.iter().map(|name| Chart { id: format!("{CHART_ID_PREFIX}{name}"), ..Chart::default() }).collect()
        };
        let ids =
            |names: &[&str]| -> Vec<String> { main_charts(&charts(names)).into_iter().map(|chart| chart.id).collect() };
        let all = ["loss", "learning_rate", "epoch", "steps_per_second", "grad_norm", "val/loss", "x"];
        assert_eq!(ids(&all), ["metric-loss", "metric-learning_rate", "metric-grad_norm", "metric-val/loss"]);
        assert_eq!(ids(&all[..4]), ["metric-loss", "metric-learning_rate", "metric-epoch", "metric-steps_per_second"]);
        assert_eq!(ids(&[]), [""; 0]);
    }

    #[test]
    fn charts_are_grouped_by_prefix() {
        let group =
            |names: &[&str]| group_by_prefix(&names.iter().map(|name| format!("metric-{name}")).collect::<Vec<_>>());
        let val = Some("val".to_owned());
        assert_eq!(
            group(&["loss", "val/a", "train/x/a", "grad_norm", "val/b"]),
            [(None, vec![0, 3]), (val.clone(), vec![1, 4]), (Some("train/x".to_owned()), vec![2])]
        );
        assert_eq!(group(&["val/a", "loss"]), [(None, vec![1]), (val, vec![0])]);
        assert_eq!(group(&[]), []);
    }

    #[test]
    fn noisy_metrics_are_smoothed_over_their_raw_values() {
        let charts = metric_charts(&metrics(), DEFAULT_OPTIONS);
        assert_eq!(charts[0].series[0].background, [(1.0, 2.0), (5.0, 1.0)]);
        assert_eq!(charts[1].series[0].background, []);
    }

    #[test]
    fn smoothing_is_named_and_can_be_turned_off() {
        let chosen = [None, Some("0.6"), Some("0"), Some("x")].map(|choice| smoothing_weight(choice).to_string());
        assert_eq!(chosen, ["0.92", "0.6", "0", "0.92"]);
        let notes = |smoothing| metric_charts(&metrics(), ChartOptions { smoothing, ..DEFAULT_OPTIONS }).remove(0).note;
        assert_eq!((notes(0.6).as_deref(), notes(0.0)), (Some("smoothed, 0.6"), None));
        let charts = metric_charts(&metrics(), ChartOptions { smoothing: 0.0, ..DEFAULT_OPTIONS });
        assert_eq!(charts[0].series[0], ChartSeries { points: vec![(1.0, 2.0), (5.0, 1.0)], ..ChartSeries::default() });
        assert_eq!(metric_charts(&metrics(), DEFAULT_OPTIONS)[1].note, None, "a learning rate is as it is");
    }

    #[test]
    fn first_nan_loss_is_marked() {
        let mut metrics = JobMetrics { loss_nan_since: Some(6), ..metrics() };
        metrics.metrics[1].steps = vec![1, 9];
        let charts = metric_charts(&metrics, DEFAULT_OPTIONS);
        assert_eq!((charts[0].nan_mark, charts[0].span), (Some(5.0), Some(AxisRange { low: 1.0, high: 9.0 })));
        assert_eq!((charts[1].nan_mark, charts[1].span), (None, None));
    }
}
