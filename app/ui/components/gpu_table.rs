//! The GPUs of a worker as a table: model, state, job and last reading.

use leptos::prelude::*;

use super::chart::sparkline::Sparkline;
use super::gpu_state::gpu_state_style;
use super::icon::Icon;
use super::progress_bar::ProgressBar;
use super::status::StatusBadge;
use super::time::RelativeTime;
use crate::protocol::gpu::GpuView;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::{format, gpu_readings};

/// A GPU of a worker, and its job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GpuEntry {
    pub gpu: GpuView,
    /// The name of the job's configuration, and the user who submitted the job.
    pub job: Option<(String, String)>,
}

pub(crate) fn gpu_entries(worker: &WorkerView) -> Vec<GpuEntry> {
    let name = |gpu: &GpuView| {
        let held = worker.jobs.iter().find(|job| Some(&job.job_id) == gpu.job_id.as_ref());
        held.map(|job| (job.config_name.clone(), job.submitted_by.clone()))
    };
    let row = |gpu: &GpuView| GpuEntry { gpu: gpu.clone(), job: name(gpu) };
    worker.gpus.iter().map(row).collect()
}

/// A panel with the GPUs of a worker; nothing if it has none.
#[component]
pub(crate) fn GpuTable(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().gpus;
    let rows = Memo::new(move |_| worker.with(gpu_entries));
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
        table.into_erased()
    };
    view! { {shown} }.into_erased()
}

#[component]
pub(crate) fn GpuRows(rows: Vec<GpuEntry>) -> impl IntoView {
    let words = &t().gpus;
    view! {
        <table class="data is-fixed gpus">
            <caption class="sr-only">{words.title}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.gpu}</th>
                    <th scope="col" class="w-1/3 md:w-[18%]">{words.state}</th>
                    <th scope="col" class="w-28">{words.memory}</th>
                    <th scope="col" class="w-[13%] max-md:hidden">{words.utilisation}</th>
                    <th scope="col" class="num w-24 max-md:hidden">{words.temperature}</th>
                    <th scope="col" class="num w-28 max-lg:hidden">{words.power}</th>
                    <th scope="col" class="num w-32 max-xl:hidden">{words.clocks}</th>
                    <th scope="col" class="num w-24 noscript:w-34 max-lg:hidden">{words.read}</th>
                </tr>
            </thead>
            <tbody>{rows.into_iter().map(|row| view! { <GpuRow row=row/> }).collect_view()}</tbody>
                    </table>
    }
    .into_erased()
}

#[component]
fn GpuRow(row: GpuEntry) -> impl IntoView {
    let words = &t().gpus;
    let GpuEntry { gpu: shown, job } = row;
    let style = gpu_state_style(shown.state);
    let reading = shown.reading.clone().unwrap_or_default();
    let name = format!("{}\u{a0}· {}", shown.gpu.index, shown.gpu.name);
    let kind = match (&shown.gpu.part_of, gpu_readings::is_unified(&shown)) {
        (Some(parent), _) => Some(words.part_of.of(parent)),
        (None, true) => Some(words.unified.to_owned()),
        (None, false) => None,
    };
    let reason = shown
        .gpu
        .unavailable
        .as_ref()
        .map(|unavailable| unavailable.detail.clone())
        .filter(|reason| !reason.is_empty());
    let ecc = reading.ecc_errors.map(|errors| words.ecc.of(errors));
    let notes = ecc.into_iter().chain(reason).collect::<Vec<_>>().join(" · ");
    let job = shown.job_id.as_ref().map(|id| {
        let (name, submitter) = job.unwrap_or_else(|| (format::short_id(id.as_str()), String::new()));
        view! {
            <a class="quiet-link" href=format!("/jobs/{id}")>{name}</a>" "{submitter}{(!notes.is_empty()).then_some(" · ")}
        }
    });
    let below = (job.is_some() || !notes.is_empty())
        .then(|| view! { <span class="row-sub" title=notes.clone()>{job}{notes.clone()}</span> });
    let read = match &shown.reading {
        Some(reading) => view! { <RelativeTime at=reading.at/> }.into_erased(),
        None => view! { <span>{words.no_reading}</span> }.into_erased(),
    };
    let percent = |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), |percent| t().format_percent(percent));
    let bar = |percent: Option<f64>, label: String| {
        percent.map(|percent| view! { <ProgressBar percent=Some(percent) label=label/> })
    };
    view! {
        <tr>
            <th scope="row" title=format!("{name} {}", shown.gpu.uuid)>
                <span class="block truncate">{name.clone()}</span>
                {kind.map(|kind| view! { <span class="row-sub">{kind}</span> })}
            </th>
            <td>
                <StatusBadge style=style/>
                {below}
            </td>
            <td>
                <span class="whitespace-nowrap tabular-nums">{gpu_readings::memory(&shown)}</span>
                {bar(gpu_readings::memory_percent(&shown), words.memory_of.of(&name))}
                <span class="row-sub md:hidden">{percent(reading.utilization_percent)} " · " {gpu_readings::temperature(&reading)}</span>
            </td>
            <td class="gpu-use max-md:hidden">
                <span class="tabular-nums">{percent(reading.utilization_percent)}</span>
                {bar(reading.utilization_percent, words.utilisation_of.of(&name))}
                <Sparkline values=shown.lately.clone() label=words.utilisation_of.of(&name)/>
            </td>
            <td class="num max-md:hidden">{gpu_readings::temperature(&reading)}</td>
            <td class="num max-lg:hidden">{gpu_readings::power(&reading)}</td>
            <td class="num max-xl:hidden">{gpu_readings::clocks(&reading)}</td>
            <td class="num text-muted max-lg:hidden">{read}</td>
        </tr>
    }
    .into_erased()
}

/// A badge beside a worker's status, if some of its GPUs are unavailable and it is not offline.
#[component]
pub(crate) fn UnavailableBadge(worker: WorkerView) -> impl IntoView {
    let some = worker.gpus_unavailable > 0 && worker.status != WorkerStatus::Offline;
    let badge = some.then(|| {
        view! {
            <span class="status status-warn" title=t().gpus.unavailable_hint>
                <Icon glyph=Glyph::Gpu/>
                <span>{t().gpus.unavailable.of(u64::from(worker.gpus_unavailable))}</span>
            </span>
        }
    });
    badge.into_erased()
}
