//! How GPUs did over time: those of a worker, those of a job, and all of them together.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::chart::data::{Axis, Chart, Line, Unit, cells};
use super::chart::switch::Switch;
use super::chart::{ChartView, Group, HALF, STRIP};
use super::failure::Refusal;
use crate::domain::ids::{JobId, WorkerId};
use crate::protocol::history::{FleetHistory, GpuHistory, GpuSeries, Range};
use crate::protocol::topic::Topic;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::pages::{Skeleton, use_port};
use crate::ui::port::Answer;
use crate::ui::ticks;

/// What is behind a line is drawn for so many lines at most: more would hide each other.
const WITH_PEAKS: usize = 2;

/// The range that the address names.
pub(crate) fn use_range() -> Memo<Range> {
    let query = use_query_map();
    Memo::new(move |_| {
        let is_day = query.with(|query| query.get("range")).as_deref() == Some("day");
        if is_day { Range::Day } else { Range::Hour }
    })
}

/// The switch between them.
#[component]
pub(crate) fn RangeSwitch(panel: &'static str) -> impl IntoView {
    let words = &t().charts;
    view! { <Switch label=words.range key="range" panel=panel choices=vec![(None, words.hour), (Some("day"), words.day)]/> }.erased()
}

/// The GPUs of a worker.
#[component]
pub(crate) fn WorkerCharts(id: WorkerId) -> impl IntoView {
    let port = use_port();
    let range = use_range();
    let topic = Topic::Worker(id.clone());
    let ask = move |range| port.worker_gpus(id.clone(), range);
    view! { <Panel ask=ask range=range topic=topic title=t().charts.gpus switches=true/> }.erased()
}

/// The GPUs of a job while it had them; nothing, if nothing of them is known.
#[component]
pub(crate) fn JobGpuCharts(id: JobId) -> impl IntoView {
    let port = use_port();
    let topic = Topic::Job(id.clone());
    let ask = move |_| port.job_gpus(id.clone());
    let range = Memo::new(|_| Range::Hour);
    view! { <Panel ask=ask range=range topic=topic title=t().charts.gpus_of_job switches=false/> }.erased()
}

#[component]
fn Panel<A>(ask: A, range: Memo<Range>, topic: Topic, title: &'static str, switches: bool) -> impl IntoView
where
    A: Fn(Range) -> Answer<GpuHistory> + Clone + Send + Sync + 'static,
{
    let group = Group::new();
    let history = Resource::new(move || range.get(), ask.clone());
    let shown = move || {
        let (ask, topic) = (ask.clone(), topic.clone());
        Suspend::new(async move {
            match history.await {
                Ok(first) => {
                    let now = refreshed(first, &[topic], move || ask(range.get_untracked()));
                    view! { <Charts now=now group=group title=title switches=switches/> }.erased()
                }
                Err(problem) => view! { <Refusal problem=problem/> }.erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.erased()
}

#[component]
fn Charts(now: RwSignal<GpuHistory>, group: Group, title: &'static str, switches: bool) -> impl IntoView {
    let drawn = move || {
        let charts = now.with(charts);
        if charts.is_empty() && !switches {
            return ().into_any();
        }
        let is_empty = charts.is_empty().then(|| view! { <p class="panel-empty">{t().charts.no_readings}</p> });
        let charts = charts.into_iter().map(|chart| view! { <ChartView chart=chart group=group sizes=HALF/> });
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
        .erased()
    };
    view! { {drawn} }.erased()
}

/// One chart for each sensor, with a line for each GPU that has it.
fn charts(history: &GpuHistory) -> Vec<Chart> {
    type Column = fn(&GpuSeries) -> &Vec<Option<f64>>;
    let words = &t().gpus;
    let sensors: [(&str, &str, Unit, Column, Option<Column>); 4] = [
        (
            "use",
            words.utilisation,
            Unit::Percent,
            |gpu| &gpu.utilization_percent,
            Some(|gpu| &gpu.utilization_peak_percent),
        ),
        ("memory", words.memory, Unit::Gigabytes, |gpu| &gpu.memory_used_gb, None),
        (
            "heat",
            words.temperature,
            Unit::Celsius,
            |gpu| &gpu.temperature_celsius,
            Some(|gpu| &gpu.temperature_peak_celsius),
        ),
        ("power", words.power, Unit::Watts, |gpu| &gpu.power_watts, None),
    ];
    let (from, step) = (seconds(history.from), f64::from(history.step_seconds));
    let length = history.gpus.iter().flat_map(|gpu| sensors.iter().map(|sensor| sensor.3(gpu).len())).max();
    let until = from + step * to_f64(length.unwrap_or_default() as u64);
    let peaks = history.gpus.len() <= WITH_PEAKS;
    let chart = |(id, title, unit, column, highest): (&str, &str, Unit, Column, Option<Column>)| {
        let telling = history.gpus.iter().filter(|gpu| !column(gpu).is_empty());
        let line = |gpu: &GpuSeries| Line {
            name: if history.gpus.len() > 1 { t().charts.gpu.of(gpu.index) } else { String::new() },
            points: cells(from, step, column(gpu)),
            behind: highest.filter(|_| peaks).map(|highest| cells(from, step, highest(gpu))).unwrap_or_default(),
        };
        let lines: Vec<Line> = telling.clone().map(line).collect();
        let top = telling.filter_map(|gpu| gpu.vram_gb).reduce(f64::max).filter(|_| unit == Unit::Gigabytes);
        let span = Some(ticks::Range { low: from, high: until });
        (!lines.is_empty()).then(|| Chart {
            id: format!("gpu-{id}"),
            title: title.to_owned(),
            unit,
            axis: Axis::Clock,
            span,
            top,
            is_log: false,
            lines,
        })
    };
    sensors.into_iter().filter_map(chart).collect()
}

fn seconds(at: crate::domain::time::Timestamp) -> f64 {
    to_f64(at.0.max(0).unsigned_abs()) / 1_000.0
}

/// All GPUs of the fleet over the last hour: how much they computed, and how many had a job.
#[component]
pub(crate) fn FleetChart() -> impl IntoView {
    let port = use_port();
    let group = Group::new();
    let history = Resource::new(|| (), {
        let port = port.clone();
        move |()| port.fleet_gpus(Range::Hour)
    });
    let shown = move || {
        let port = port.clone();
        Suspend::new(async move {
            let first = match history.await {
                Ok(first) => first,
                Err(problem) => return view! { <Refusal problem=problem/> }.erased(),
            };
            let now = refreshed(first, &[Topic::Gpus], move || port.fleet_gpus(Range::Hour));
            let drawn = move || {
                let chart = now.with(fleet)?;
                Some(view! {
                    <section class="panel mb-6" aria-labelledby="fleet-use">
                        <div class="panel-head">
                            <h2 id="fleet-use">{t().charts.fleet}</h2>
                            <span class="panel-note">{t().charts.hour}</span>
                            <a class="more-link" href="/gpus">{t().charts.all_gpus}</a>
                        </div>
                        <div class="charts"><ChartView chart=chart group=group sizes=STRIP/></div>
                    </section>
                })
            };
            view! { {drawn} }.erased()
        })
    };
    view! { <Transition>{shown}</Transition> }.erased()
}

/// None while no GPU was heard of.
fn fleet(history: &FleetHistory) -> Option<Chart> {
    let words = &t().charts;
    let (from, step) = (seconds(history.from), f64::from(history.step_seconds));
    let share = |(busy, gpus): (&Option<u32>, &Option<u32>)| {
        let (busy, gpus) = (*busy).zip(*gpus).filter(|(_, gpus)| *gpus > 0)?;
        Some(f64::from(busy) * 100.0 / f64::from(gpus))
    };
    let shares: Vec<_> = history.busy.iter().zip(&history.gpus).map(share).collect();
    let newest = |counts: &[Option<u32>]| counts.iter().rev().find_map(|count| *count);
    let (busy, gpus) = newest(&history.busy).zip(newest(&history.gpus))?;
    let line =
        |name: String, values: &[Option<f64>]| Line { name, points: cells(from, step, values), behind: Vec::new() };
    let until = from + step * to_f64(history.gpus.len() as u64);
    Some(Chart {
        id: "fleet".to_owned(),
        title: words.busy_of.with(&[&busy, &gpus]),
        unit: Unit::Percent,
        axis: Axis::Clock,
        span: Some(ticks::Range { low: from, high: until }),
        top: None,
        is_log: false,
        lines: vec![
            line(t().gpus.utilisation.to_owned(), &history.utilization_percent),
            line(words.with_job.to_owned(), &shares),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_that_tell_nothing_have_no_chart() {
        let gpu = |index| GpuSeries {
            index,
            vram_gb: Some(80.0),
            utilization_percent: vec![Some(50.0), None],
            utilization_peak_percent: vec![Some(90.0), None],
            memory_used_gb: vec![None, Some(20.0)],
            ..GpuSeries::default()
        };
        let history = |gpus| GpuHistory { gpus, step_seconds: 15, ..GpuHistory::default() };
        let one = charts(&history(vec![gpu(0)]));
        assert_eq!(one.iter().map(|chart| chart.id.as_str()).collect::<Vec<_>>(), ["gpu-use", "gpu-memory"]);
        assert_eq!((one[1].top, &one[0].lines[0].name[..], one[0].lines[0].behind.len()), (Some(80.0), "", 1));
        let three = charts(&history(vec![gpu(0), gpu(3), gpu(5)]));
        assert_eq!(
            three[0].lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(),
            ["GPU 0", "GPU 3", "GPU 5"]
        );
        assert!(three[0].lines.iter().all(|line| line.behind.is_empty()), "peaks of many would hide each other");
        assert_eq!(charts(&GpuHistory::default()), []);
    }

    #[test]
    fn the_fleets_chart_is_of_shares() {
        let history = FleetHistory {
            step_seconds: 15,
            utilization_percent: vec![Some(40.0), None],
            gpus: vec![Some(4), None],
            busy: vec![Some(1), None],
            ..FleetHistory::default()
        };
        let chart = fleet(&history).unwrap();
        assert_eq!((chart.title.as_str(), chart.lines[1].points[0].1), ("1 of 4 GPUs with a job", 25.0));
        assert_eq!(fleet(&FleetHistory::default()), None);
    }
}
