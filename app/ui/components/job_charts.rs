//! What a job's trainer measured: the loss large, and everything else beside each other.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::chart::data::{Axis, Chart, Line, Unit};
use super::chart::switch::Switch;
use super::chart::{ChartView, Group, SMALL, WIDE};
use super::failure::Failure;
use crate::domain::ids::{Attempt, JobId};
use crate::protocol::history::{JobMetrics, MetricSeries};
use crate::protocol::topic::Topic;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::pages::{Skeleton, use_port};
use crate::ui::ticks::smooth;

/// How much of the past a smoothed value keeps.
const SMOOTHING: f64 = 0.92;
/// What is smooth by itself, or has steps that mean something.
const AS_IT_IS: [&str; 3] = ["learning_rate", "epoch", "steps_per_second"];

/// The charts of the attempt that the address names; of the newest, if it names none.
#[component]
pub(crate) fn JobCharts(id: JobId, empty: Signal<&'static str>) -> impl IntoView {
    let port = use_port();
    let query = use_query_map();
    let attempt =
        Memo::new(move |_| query.with(|query| query.get("attempt")).and_then(|n| n.parse().ok()).map(Attempt));
    let group = Group::new();
    let metrics = Resource::new(move || attempt.get(), {
        let (port, id) = (port.clone(), id.clone());
        move |attempt| port.job_metrics(id.clone(), attempt)
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match metrics.await {
                Ok(first) => {
                    let topic = Topic::Job(id.clone());
                    let now = refreshed(first, &[topic], move || port.job_metrics(id.clone(), attempt.get_untracked()));
                    view! { <Charts now=now group=group empty=empty/> }.erased()
                }
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.erased()
}

#[component]
fn Charts(now: RwSignal<JobMetrics>, group: Group, empty: Signal<&'static str>) -> impl IntoView {
    let words = &t().charts;
    let query = use_query_map();
    let says = move |key: &'static str, value: &'static str| {
        Memo::new(move |_| query.with(|query| query.get(key)).as_deref() == Some(value))
    };
    let (is_log, by_time) = (says("scale", "log"), says("x", "time"));
    let drawn = move || {
        let charts = now.with(|now| charts(now, is_log.get(), by_time.get()));
        if charts.is_empty() {
            return view! { <p class="panel-empty">{empty}</p> }.erased();
        }
        let mut charts = charts.into_iter();
        let first = charts.next().map(|chart| view! { <ChartView chart=chart group=group sizes=WIDE/> });
        let others = charts.map(|chart| view! { <ChartView chart=chart group=group sizes=SMALL/> });
        let thinned = now.with(|now| now.kept_every);
        let thinned = thinned.map(|every| {
            view! { <p class="panel-note" data-test="thinned">{words.kept_every.of(every)}</p> }
        });
        view! { {first}<div class="chart-grid">{others.collect_view()}</div>{thinned} }.erased()
    };
    view! {
        <section class="panel" aria-labelledby="metrics">
            <div class="panel-head">
                <h2 id="metrics">{words.metrics}</h2>
                <Switch label=words.over key="x" panel="metrics" choices=vec![(None, words.by_step), (Some("time"), words.by_time)]/>
                <Switch label=words.scale key="scale" panel="metrics" choices=vec![(None, words.linear), (Some("log"), words.log)]/>
            </div>
            <div class="charts">{drawn}</div>
        </section>
    }
    .erased()
}

/// A chart of each number, the loss first.
fn charts(metrics: &JobMetrics, is_log: bool, by_time: bool) -> Vec<Chart> {
    metrics.metrics.iter().map(|series| chart(series, is_log, by_time)).collect()
}

fn chart(series: &MetricSeries, is_log: bool, by_time: bool) -> Chart {
    let title = match series.name.as_str() {
        "loss" => t().job.loss.to_owned(),
        "learning_rate" => t().job.learning_rate.to_owned(),
        "epoch" => t().job.epoch.to_owned(),
        "steps_per_second" => t().charts.throughput.to_owned(),
        own => own.to_owned(),
    };
    let places: Vec<f64> =
        if by_time { series.seconds.clone() } else { series.steps.iter().map(|step| to_f64(*step)).collect() };
    let with = |values: &[f64]| places.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>();
    let line = if AS_IT_IS.contains(&series.name.as_str()) {
        Line { points: with(&series.values), ..Line::default() }
    } else {
        let smoothed = smooth(&series.values, SMOOTHING);
        Line { points: with(&smoothed), behind: with(&series.values), ..Line::default() }
    };
    Chart {
        id: format!("metric-{}", series.name),
        title,
        unit: if series.name == "steps_per_second" { Unit::Count } else { Unit::Plain },
        axis: if by_time { Axis::Elapsed } else { Axis::Steps },
        span: None,
        top: None,
        is_log: is_log && !["epoch", "steps_per_second"].contains(&series.name.as_str()),
        lines: vec![line],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let titles: Vec<_> = charts(&metrics(), false, false).into_iter().map(|chart| chart.title).collect();
        assert_eq!(titles, ["Loss", "Learning rate", "<b>own</b>"]);
        let xs = |by_time: bool| charts(&metrics(), false, by_time)[1].lines[0].points.clone();
        assert_eq!((xs(false), xs(true)), (vec![(1.0, 2.0), (5.0, 1.0)], vec![(0.0, 2.0), (2.5, 1.0)]));
    }

    #[test]
    fn what_is_noise_is_smoothed_with_what_was_told_behind_it() {
        let charts = charts(&metrics(), false, false);
        assert_eq!(charts[0].lines[0].behind, [(1.0, 2.0), (5.0, 1.0)]);
        assert_eq!(charts[1].lines[0].behind, []);
    }
}
