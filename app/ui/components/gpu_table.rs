//! The GPUs of a worker as a table: what they are, who has them, and how they were last.

use leptos::prelude::*;

use super::chart::spark::Spark;
use super::gpu_state::look;
use super::icon::{Glyph, Icon};
use super::scale::Scale;
use super::status::Status;
use super::time::Moment;
use crate::protocol::gpu::GpuView;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::{format, readings};

/// A GPU of a worker, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub gpu: GpuView,
    /// The name of the job that holds it, and whose it is.
    pub job: Option<(String, String)>,
}

/// The GPUs of a worker.
pub(crate) fn rows(worker: &WorkerView) -> Vec<Row> {
    let name = |gpu: &GpuView| {
        let held = worker.jobs.iter().find(|job| Some(&job.job_id) == gpu.job_id.as_ref());
        held.map(|job| (job.config_name.clone(), job.submitted_by.clone()))
    };
    let row = |gpu: &GpuView| Row { gpu: gpu.clone(), job: name(gpu) };
    worker.gpus.iter().map(row).collect()
}

/// A table of a worker's GPUs that follows its signal; nothing, if it has none.
#[component]
pub(crate) fn GpuTable(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().gpus;
    let rows = Memo::new(move |_| worker.with(rows));
    let shown = move || {
        let rows = rows.get();
        let table = (!rows.is_empty()).then(|| {
            view! {
                <section class="panel" aria-labelledby="gpus">
                    <h2 id="gpus" class="panel-head">{words.title}</h2>
                    <GpuRows rows=rows/>
                </section>
            }
        });
        table.erased()
    };
    view! { {shown} }.erased()
}

/// GPUs as a table.
#[component]
pub(crate) fn GpuRows(rows: Vec<Row>) -> impl IntoView {
    let words = &t().gpus;
    view! {
        <table class="data gpus">
            <caption class="sr-only">{words.title}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.gpu}</th>
                    <th scope="col">{words.state}</th>
                    <th scope="col">{words.memory}</th>
                    <th scope="col" class="max-md:hidden">{words.utilisation}</th>
                    <th scope="col" class="num max-md:hidden">{words.temperature}</th>
                    <th scope="col" class="num max-lg:hidden">{words.power}</th>
                    <th scope="col" class="num max-xl:hidden">{words.clocks}</th>
                    <th scope="col" class="num max-md:hidden">{words.read}</th>
                </tr>
            </thead>
            <tbody>{rows.into_iter().map(|row| view! { <GpuRow row=row/> }).collect_view()}</tbody>
                    </table>
    }
    .erased()
}

#[component]
fn GpuRow(row: Row) -> impl IntoView {
    let words = &t().gpus;
    let Row { gpu: shown, job } = row;
    let look = look(shown.state);
    let reading = shown.reading.clone().unwrap_or_default();
    let name = format!("{}\u{a0}· {}", shown.gpu.index, shown.gpu.name);
    let kind = match (&shown.gpu.part_of, readings::is_unified(&shown)) {
        (Some(whole), _) => Some(words.part_of.of(whole)),
        (None, true) => Some(words.unified.to_owned()),
        (None, false) => None,
    };
    let why = shown.gpu.withheld.as_ref().map(|withheld| withheld.detail.clone()).filter(|why| !why.is_empty());
    let job = shown.job_id.as_ref().map(|id| {
        let (name, person) = job.unwrap_or_else(|| (format::short_id(id.as_str()), String::new()));
        view! {
            <a class="quiet-link row-sub" href=format!("/jobs/{id}")>{name}</a>
            <span class="row-sub wrap-anywhere">{person}</span>
        }
    });
    let read = match &shown.reading {
        Some(reading) => view! { <Moment at=reading.at/> }.erased(),
        None => view! { <span>{words.no_reading}</span> }.erased(),
    };
    let percent = |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), |percent| t().percent(percent));
    let bar = |percent: Option<f64>, label: String| {
        percent.map(|percent| view! { <Scale percent=Some(percent) label=label/> })
    };
    view! {
        <tr>
            <th scope="row" title=shown.gpu.uuid.clone()>
                {name.clone()}
                {kind.map(|kind| view! { <span class="row-sub">{kind}</span> })}
            </th>
            <td>
                <Status look=look/>
                {why.map(|why| view! { <span class="row-sub wrap-anywhere">{why}</span> })}
                {job}
            </td>
            <td>
                <span class="whitespace-nowrap tabular-nums">{readings::memory(&shown)}</span>
                {bar(readings::memory_percent(&shown), words.memory_of.of(&name))}
                {reading.ecc_errors.map(|errors| view! { <span class="row-sub">{words.ecc.of(errors)}</span> })}
                <span class="row-sub md:hidden">{percent(reading.utilization_percent)} " · " {readings::temperature(&reading)}</span>
            </td>
            <td class="max-md:hidden">
                <span class="tabular-nums">{percent(reading.utilization_percent)}</span>
                {bar(reading.utilization_percent, words.utilisation_of.of(&name))}
                <Spark values=shown.lately.clone() label=words.utilisation_of.of(&name)/>
            </td>
            <td class="num max-md:hidden">{readings::temperature(&reading)}</td>
            <td class="num max-lg:hidden">{readings::power(&reading)}</td>
            <td class="num max-xl:hidden">{readings::clocks(&reading)}</td>
            <td class="num text-muted max-md:hidden">{read}</td>
        </tr>
    }
    .erased()
}

/// Beside a worker's status: that some of its GPUs are withheld.
#[component]
pub(crate) fn WithheldBadge(worker: WorkerView) -> impl IntoView {
    let some = worker.gpus_withheld > 0 && worker.status != WorkerStatus::Offline;
    let badge = some.then(|| {
        view! {
            <span class="status status-warn" title=t().gpus.withheld_hint>
                <Icon glyph=Glyph::Gpu/>
                <span>{t().gpus.withheld.of(u64::from(worker.gpus_withheld))}</span>
            </span>
        }
    });
    badge.erased()
}
