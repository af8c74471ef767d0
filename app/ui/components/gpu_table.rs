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
        let job = worker.jobs.iter().find(|job| Some(&job.job_id) == gpu.job_id.as_ref());
        job.map(|job| (job.config_name.clone(), job.submitted_by.clone()))
    };
    let row = |gpu: &GpuView| GpuEntry { gpu: gpu.clone(), job: name(gpu) };
    worker.gpus.iter().map(row).collect()
}

/// A panel with the GPUs of a worker; nothing if it has none.
#[component]
pub(crate) fn GpuTable(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().gpus;
    let rows = Memo::new(move |_| worker.with(gpu_entries));
    let content = move || {
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
    view! { {content} }.into_erased()
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
    let GpuEntry { gpu: gpu_view, job } = row;
    let style = gpu_state_style(gpu_view.state);
    let reading = gpu_view.reading.clone().unwrap_or_default();
    let name = format!("{}\u{a0}· {}", gpu_view.gpu.index, gpu_view.gpu.name);
    let memory_note = match (&gpu_view.gpu.part_of, gpu_readings::is_unified(&gpu_view)) {
        (Some(parent), _) => Some(words.part_of.of(parent)),
        (None, true) => Some(words.unified.to_owned()),
        (None, false) => None,
    };
    let reason = gpu_view
        .gpu
        .unavailable
        .as_ref()
        .map(|unavailable| unavailable.detail.clone())
        .filter(|reason| !reason.is_empty());
    let ecc = reading.ecc_errors.map(|errors| words.ecc.of(errors));
    let notes = ecc.into_iter().chain(reason).collect::<Vec<_>>().join(" · ");
    let job = gpu_view.job_id.as_ref().map(|id| {
        let (name, submitter) = job.unwrap_or_else(|| (format::short_id(id.as_str()), String::new()));
        view! {
            <a class="quiet-link" href=format!("/jobs/{id}")>{name}</a>" "{submitter}{(!notes.is_empty()).then_some(" · ")}
        }
    });
    let details = (job.is_some() || !notes.is_empty())
        .then(|| view! { <span class="row-sub" title=notes.clone()>{job}{notes.clone()}</span> });
    let reading_time = match &gpu_view.reading {
        Some(reading) => view! { <RelativeTime at=reading.at/> }.into_erased(),
        None => view! { <span>{words.no_reading}</span> }.into_erased(),
    };
    let percent = |percent: Option<f64>| percent.map_or_else(|| "–".to_owned(), |percent| t().format_percent(percent));
    let bar = |percent: Option<f64>, label: String| {
        percent.map(|percent| view! { <ProgressBar percent=Some(percent) label=label/> })
    };
    view! {
        <tr>
            <th scope="row" title=format!("{name} {}", gpu_view.gpu.uuid)>
                <span class="block truncate">{name.clone()}</span>
                {memory_note.map(|memory_note| view! { <span class="row-sub">{memory_note}</span> })}
            </th>
            <td>
                <StatusBadge style=style/>
                {details}
            </td>
            <td>
                <span class="whitespace-nowrap tabular-nums">{gpu_readings::memory(&gpu_view)}</span>
                {bar(gpu_readings::memory_percent(&gpu_view), words.memory_of.of(&name))}
                <span class="row-sub md:hidden">{percent(reading.utilization_percent)} " · " {gpu_readings::temperature(&reading)}</span>
            </td>
            <td class="gpu-use max-md:hidden">
                <span class="tabular-nums">{percent(reading.utilization_percent)}</span>
                {bar(reading.utilization_percent, words.utilisation_of.of(&name))}
                <Sparkline values=gpu_view.lately.clone() label=words.utilisation_of.of(&name)/>
            </td>
            <td class="num max-md:hidden">{gpu_readings::temperature(&reading)}</td>
            <td class="num max-lg:hidden">{gpu_readings::power(&reading)}</td>
            <td class="num max-xl:hidden">{gpu_readings::clocks(&reading)}</td>
            <td class="num text-muted max-lg:hidden">{reading_time}</td>
        </tr>
    }
    .into_erased()
}

/// A badge beside a worker's status, if some of its GPUs are unavailable and it is not offline.
#[component]
pub(crate) fn UnavailableBadge(worker: WorkerView) -> impl IntoView {
    let is_shown = worker.gpus_unavailable > 0 && worker.status != WorkerStatus::Offline;
    let badge = is_shown.then(|| {
        view! {
            <span class="status status-warn" title=t().gpus.unavailable_hint>
                <Icon glyph=Glyph::Gpu/>
                <span>{t().gpus.unavailable.of(u64::from(worker.gpus_unavailable))}</span>
            </span>
        }
    });
    badge.into_erased()
}
