//! GPUs as tiles: utilization, readings, and the job of each.

use leptos::prelude::*;

use super::chart::sparkline::Sparkline;
use super::gpu_state::{edge_class, gpu_state_style};
use super::gpu_table::GpuEntry;
use super::icon::Icon;
use super::progress_bar::ProgressBar;
use crate::domain::ids::WorkerId;
use crate::protocol::gpu::GpuView;
use crate::protocol::status::GpuState;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::{format, gpu_readings};

#[component]
pub(crate) fn GpuTiles(worker: WorkerId, rows: Vec<GpuEntry>) -> impl IntoView {
    let tiles = rows.into_iter().map(|row| view! { <GpuTile worker=worker.clone() row=row/> });
    view! { <ul class="gpu-tiles">{tiles.collect_view()}</ul> }.into_erased()
}

/// One GPU, with a link to its job or to the GPUs of its worker.
#[component]
fn GpuTile(worker: WorkerId, row: GpuEntry) -> impl IntoView {
    let words = &t().gpus;
    let GpuEntry { gpu: gpu_view, job } = row;
    let state = gpu_view.state;
    let style = gpu_state_style(state);
    let reading = gpu_view.reading.clone().unwrap_or_default();
    let href = gpu_link(&worker, &gpu_view);
    let (job, submitter) = job.unzip();
    let job_name = gpu_view.job_id.as_ref().map(|id| job.unwrap_or_else(|| format::short_id(id.as_str())));
    let reason = gpu_view
        .gpu
        .unavailable
        .as_ref()
        .map(|unavailable| unavailable.detail.clone())
        .filter(|reason| !reason.is_empty());
    // The model identifies the vendor, and a tile is narrow.
    let name = format!("{}\u{a0}· {}", gpu_view.gpu.index, gpu_view.gpu.name.trim_start_matches("NVIDIA "));
    let utilization = reading.utilization_percent;
    let scale = utilization.map(|utilization| {
        view! { <ProgressBar percent=Some(utilization) label=words.utilisation_of.of(&name) over={state != GpuState::Busy}/> }
    });
    let sensor_texts = [gpu_readings::temperature(&reading), gpu_readings::power(&reading)]
        .into_iter()
        .filter(|text| text != gpu_readings::NO_VALUE);
    let sensors = sensor_texts.collect::<Vec<_>>().join(" · ");
    // Usually there are no errors; only the table shows a zero.
    let ecc = reading.ecc_errors.filter(|errors| *errors > 0);
    let sensors = (!sensors.is_empty()).then(|| view! { <span class="gpu-tile-line">{sensors}</span> });
    view! {
        <li>
            <a class=format!("gpu-tile {}", edge_class(state)) href=href title=gpu_view.gpu.uuid.clone()>
                <span class="gpu-tile-head">
                    <span class="truncate">{name.clone()}</span>
                    <span class=style.class><Icon glyph=style.glyph/></span>
                </span>
                <span class="gpu-tile-state">
                    <span class="truncate">{job_name.unwrap_or_else(|| style.label.to_owned())}</span>
                    <span class="sr-only">", "{style.label}</span>
                    <span class="gpu-tile-value">{utilization.map(|utilization| t().format_percent(utilization))}</span>
                </span>
                {submitter.map(|submitter| view! { <span class="gpu-tile-line truncate">{submitter}</span> })}
                {scale}
                <Sparkline values=gpu_view.lately.clone() label=words.utilisation_of.of(&name)/>
                <span class="gpu-tile-line">{gpu_readings::memory(&gpu_view)}</span>
                {sensors}
                {ecc.map(|errors| view! { <span class="gpu-tile-line">{words.ecc.of(errors)}</span> })}
                {reason.map(|reason| view! { <span class="gpu-tile-line wrap-anywhere">{reason}</span> })}
            </a>
        </li>
    }
    .into_erased()
}

/// Returns the URL of the GPU's job, or of its worker's GPUs.
pub(super) fn gpu_link(worker: &WorkerId, gpu: &GpuView) -> String {
    match &gpu.job_id {
        Some(job) => format!("/jobs/{job}"),
        None => format!("/admin/workers/{worker}?show=gpus"),
    }
}
