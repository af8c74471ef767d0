//! GPU readings over time: of a worker, of a job, and of the fleet.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::chart::data::{Axis, Chart, ChartSeries, ValueUnit, binned_points};
use super::chart::switch::Switch;
use super::chart::{ChartGroup, ChartView, HALF, STRIP, chart_ids, nth_chart};
use super::problem_panel::ProblemNotice;
use crate::domain::ids::{JobId, WorkerId};
use crate::protocol::gpus::history::{FleetHistory, GpuHistory, GpuSeries, HistoryRange};
use crate::protocol::topic::Topic;
use crate::ui::axis;
use crate::ui::backend::{BackendFuture, use_backend};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;
use crate::ui::job_feed::use_job_feed;
use crate::ui::live::live_signal;
use crate::ui::page_query::FLEET_GPUS;
use crate::ui::view_scope::ViewScope;

/// Maximum number of GPUs for which peaks are drawn: more would hide each other.
const MAX_PEAK_SERIES: usize = 2;

/// Returns the range in the URL (`?range=`).
pub(crate) fn use_time_range() -> Memo<HistoryRange> {
    let query = use_query_map();
    Memo::new(move |_| {
        let is_day = query.with(|query| query.get("range")).as_deref() == Some("day");
        if is_day { HistoryRange::Day } else { HistoryRange::Hour }
    })
}

#[component]
pub(crate) fn RangeSwitch(panel: &'static str) -> impl IntoView {
    let words = &t().charts;
    view! { <Switch label=words.range key="range" panel=panel choices=vec![(None, words.hour), (Some("day"), words.day)]/> }.into_erased()
}

/// The GPU history of a worker.
#[component]
pub(crate) fn WorkerGpuCharts(id: WorkerId) -> impl IntoView {
    let backend = use_backend();
    let range = use_time_range();
    let topic = Topic::Worker(id.clone());
    let fetch = move |range| backend.worker_gpus(id.clone(), range);
    view! { <GpuHistoryPanel fetch=fetch range=range topic=Some(topic) title=t().charts.gpus switches=true/> }
        .into_erased()
}

/// The GPU history of a job.
#[component]
pub(crate) fn JobGpuCharts(id: JobId) -> impl IntoView {
    let backend = use_backend();
    let fetch = move |_| backend.job_gpus(id.clone());
    let range = Memo::new(|_| HistoryRange::Hour);
    view! { <GpuHistoryPanel fetch=fetch range=range topic=None title=t().charts.gpus_of_job switches=false/> }
        .into_erased()
}

/// A panel that loads a GPU history and updates it when `topic` changes; without a topic, the job's feed updates it.
#[component]
fn GpuHistoryPanel<A>(
    fetch: A,
    range: Memo<HistoryRange>,
    topic: Option<Topic>,
    title: &'static str,
    switches: bool,
) -> impl IntoView
where
    A: Fn(HistoryRange) -> BackendFuture<GpuHistory> + Clone + Send + Sync + 'static,
{
    let (group, feed) = (ChartGroup::new(), use_job_feed());
    let history = Resource::new(move || range.get(), fetch.clone());
    let scope = ViewScope::current();
    let content = move || {
        let (scope, fetch, topic) = (scope.clone(), fetch.clone(), topic.clone());
        Suspend::new(async move {
            match history.await {
                Ok(first) => scope.render(|| {
                    let now = match topic {
                        Some(topic) => live_signal(first, &[topic], move || fetch(range.get_untracked())),
                        None => RwSignal::new(first),
                    };
                    feed.gpus.set_value(Some(now));
                    view! { <GpuHistoryCharts now=now group=group title=title switches=switches/> }.into_erased()
                }),
                Err(problem) => view! { <ProblemNotice problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{content}</Transition> }.into_erased()
}

#[component]
fn GpuHistoryCharts(
    now: RwSignal<GpuHistory>,
    group: ChartGroup,
    title: &'static str,
    switches: bool,
) -> impl IntoView {
    let charts = Memo::new(move |_| now.with(sensor_charts));
    let ids = chart_ids(charts);
    let charts_view = move || {
        let count = ids.with(Vec::len);
        let is_empty = (count == 0).then(|| view! { <p class="panel-empty">{t().charts.no_readings}</p> });
        let charts =
            (0..count).map(|index| view! { <ChartView chart=nth_chart(charts, index) group=group sizes=HALF/> });
        view! {
            <section class="panel" aria-labelledby="gpu-history">
                <div class="panel-head">
                    <h2 id="gpu-history">{title}</h2>
                    {switches.then(|| view! { <RangeSwitch panel="gpu-history"/> })}
                </div>
                {is_empty}
                <div class="charts chart-halves">{charts.collect_view()}</div>
            </section>
        }
        .into_erased()
    };
    view! { {charts_view} }.into_erased()
}

/// Returns one chart for each sensor, with a line for each GPU that has it.
pub(crate) fn sensor_charts(history: &GpuHistory) -> Vec<Chart> {
    type Column = fn(&GpuSeries) -> &Vec<Option<f64>>;
    let words = &t().gpus;
    let sensors: [(&str, &str, ValueUnit, Column, Option<Column>); 4] = [
        (
            "use",
            words.utilisation,
            ValueUnit::Percent,
            |gpu| &gpu.utilization_percent,
            Some(|gpu| &gpu.utilization_peak_percent),
        ),
        ("memory", words.memory, ValueUnit::Gigabytes, |gpu| &gpu.memory_used_gb, None),
        (
            "heat",
            words.temperature,
            ValueUnit::Celsius,
            |gpu| &gpu.temperature_celsius,
            Some(|gpu| &gpu.temperature_peak_celsius),
        ),
        ("power", words.power, ValueUnit::Watts, |gpu| &gpu.power_watts, None),
    ];
    let (from, step) = (to_seconds(history.from), f64::from(history.step_seconds));
    let length = history.gpus.iter().flat_map(|gpu| sensors.iter().map(|sensor| sensor.3(gpu).len())).max();
    let until = from + step * to_f64(length.unwrap_or_default() as u64);
    let peaks = history.gpus.len() <= MAX_PEAK_SERIES;
    let chart = |(id, title, unit, column, peak_column): (&str, &str, ValueUnit, Column, Option<Column>)| {
        let gpus_with_values = history.gpus.iter().filter(|gpu| !column(gpu).is_empty());
        let line = |gpu: &GpuSeries| ChartSeries {
            name: if history.gpus.len() > 1 { t().charts.gpu.of(gpu.index) } else { String::new() },
            points: binned_points(from, step, column(gpu)),
            background: peak_column
                .filter(|_| peaks)
                .map(|peak_column| binned_points(from, step, peak_column(gpu)))
                .unwrap_or_default(),
            ..ChartSeries::default()
        };
        let lines: Vec<ChartSeries> = gpus_with_values.clone().map(line).collect();
        let max_memory =
            gpus_with_values.filter_map(|gpu| gpu.vram_gb).reduce(f64::max).filter(|_| unit == ValueUnit::Gigabytes);
        let span = Some(axis::AxisRange { low: from, high: until });
        (!lines.is_empty()).then(|| Chart {
            id: format!("gpu-{id}"),
            title: title.to_owned(),
            unit,
            axis: Axis::Clock,
            span,
            min_top: max_memory,
            series: lines,
            ..Chart::default()
        })
    };
    sensors.into_iter().filter_map(chart).collect()
}

fn to_seconds(at: crate::domain::time::Timestamp) -> f64 {
    to_f64(at.0.max(0).unsigned_abs()) / 1_000.0
}

/// GPU counts of the fleet, from the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FleetGpus {
    pub busy: u64,
    pub connected: u64,
    /// GPUs that report their utilization.
    pub measured: u64,
}

/// The fleet's GPUs over the last hour: their mean utilization, and the share that is allocated.
#[component]
pub(crate) fn FleetChart(gpus: Memo<FleetGpus>) -> impl IntoView {
    let backend = use_backend();
    let group = ChartGroup::new();
    let history = Resource::new(|| (), {
        let backend = backend.clone();
        move |()| backend.fleet_gpus(HistoryRange::Hour)
    });
    let content = move || {
        let backend = backend.clone();
        Suspend::new(async move {
            let first = match history.await {
                Ok(first) => first,
                Err(problem) => return view! { <ProblemNotice problem=problem/> }.into_erased(),
            };
            let now = live_signal(first, &[Topic::Gpus], move || backend.fleet_gpus(HistoryRange::Hour));
            let charts =
                Memo::new(move |_| now.with(|history| utilization_chart(history, gpus.get())).into_iter().collect());
            let ids = chart_ids(charts);
            let chart_view = move || {
                (!ids.with(Vec::is_empty)).then(|| {
                    view! {
                        <section class="panel mb-6" aria-labelledby="fleet-use">
                            <div class="panel-head">
                                <h2 id="fleet-use">{t().charts.fleet}</h2>
                                <span class="panel-note">{t().charts.hour}</span>
                                <a class="more-link" href=FLEET_GPUS>{t().charts.all_gpus}</a>
                            </div>
                            <div class="charts"><ChartView chart=nth_chart(charts, 0) group=group sizes=STRIP/></div>
                        </section>
                    }
                })
            };
            view! { {chart_view} }.into_erased()
        })
    };
    view! { <Transition>{content}</Transition> }.into_erased()
}

/// Returns the fleet's chart; none while there are no readings. Its last share of allocated GPUs is computed from
/// `now`, which includes GPUs that report no readings.
fn utilization_chart(history: &FleetHistory, now: FleetGpus) -> Option<Chart> {
    let words = &t().charts;
    let (from, step) = (to_seconds(history.from), f64::from(history.step_seconds));
    let share = |(busy, gpus): (&Option<u32>, &Option<u32>)| {
        let (busy, gpus) = (*busy).zip(*gpus).filter(|(_, gpus)| *gpus > 0)?;
        Some(f64::from(busy) * 100.0 / f64::from(gpus))
    };
    let mut shares: Vec<_> = history.busy.iter().zip(&history.gpus).map(share).collect();
    let newest = shares.iter_mut().rev().find(|share| share.is_some())?;
    *newest = (now.connected > 0).then(|| to_f64(now.busy) * 100.0 / to_f64(now.connected));
    let mut utilisation = t().gpus.utilisation.to_owned();
    if now.measured < now.connected {
        let measured_text =
            t().common.of.with(&[&t().format_integer(now.measured), &t().format_integer(now.connected)]);
        utilisation = format!("{utilisation} ({measured_text})");
    }
    let line = |name: String, values: &[Option<f64>]| ChartSeries {
        name,
        points: binned_points(from, step, values),
        ..ChartSeries::default()
    };
    let until = from + step * to_f64(history.gpus.len() as u64);
    Some(Chart {
        id: "fleet".to_owned(),
        title: words.busy_of.with(&[&t().format_integer(now.busy), &t().format_integer(now.connected)]),
        unit: ValueUnit::Percent,
        axis: Axis::Clock,
        span: Some(axis::AxisRange { low: from, high: until }),
        series: vec![line(utilisation, &history.utilization_percent), line(words.with_job.to_owned(), &shares)],
        ..Chart::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_without_readings_have_no_chart() {
        let gpu = |index| GpuSeries {
            index,
            vram_gb: Some(80.0),
            utilization_percent: vec![Some(50.0), None],
            utilization_peak_percent: vec![Some(90.0), None],
            memory_used_gb: vec![None, Some(20.0)],
            ..GpuSeries::default()
        };
        let history = |gpus| GpuHistory { gpus, step_seconds: 15, ..GpuHistory::default() };
        let charts = sensor_charts(&history(vec![gpu(0)]));
        assert_eq!(charts.iter().map(|chart| chart.id.as_str()).collect::<Vec<_>>(), ["gpu-use", "gpu-memory"]);
        assert_eq!(
            (charts[1].min_top, &charts[0].series[0].name[..], charts[0].series[0].background.len()),
            (Some(80.0), "", 1)
        );
        let three = sensor_charts(&history(vec![gpu(0), gpu(3), gpu(5)]));
        assert_eq!(
            three[0].series.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(),
            ["GPU 0", "GPU 3", "GPU 5"]
        );
        assert!(three[0].series.iter().all(|line| line.background.is_empty()), "peaks of many would hide each other");
        assert_eq!(sensor_charts(&GpuHistory::default()), []);
    }

    #[test]
    fn fleet_chart_shows_percentages() {
        let history = FleetHistory {
            step_seconds: 15,
            utilization_percent: vec![Some(40.0), None],
            gpus: vec![Some(4), None],
            busy: vec![Some(1), None],
            ..FleetHistory::default()
        };
        let all = FleetGpus { busy: 1, connected: 4, measured: 4 };
        let chart = utilization_chart(&history, all).unwrap();
        assert_eq!((chart.title.as_str(), chart.series[1].points[0].1), ("1 of 4 GPUs allocated", 25.0));
        assert_eq!(chart.series[0].name, "Utilization");
        assert_eq!(utilization_chart(&FleetHistory::default(), all), None);
    }

    #[test]
    fn fleet_chart_counts_gpus_without_readings() {
        let history = FleetHistory {
            step_seconds: 15,
            utilization_percent: vec![Some(40.0), Some(50.0)],
            gpus: vec![Some(12), Some(12)],
            busy: vec![Some(6), Some(8)],
            ..FleetHistory::default()
        };
        let chart = utilization_chart(&history, FleetGpus { busy: 18, connected: 24, measured: 12 }).unwrap();
        assert_eq!(chart.title, "18 of 24 GPUs allocated");
        assert_eq!(chart.series[1].points.iter().map(|point| point.1).collect::<Vec<_>>(), [50.0, 75.0]);
        assert_eq!(chart.series[0].name, "Utilization (12 of 24)");
    }
}
