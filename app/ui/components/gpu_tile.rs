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
    let GpuEntry { gpu: shown, job } = row;
    let state = shown.state;
    let style = gpu_state_style(state);
    let reading = shown.reading.clone().unwrap_or_default();
    let href = gpu_link(&worker, &shown);
    let (job, submitter) = job.unzip();
    let holder = shown.job_id.as_ref().map(|id| job.unwrap_or_else(|| format::short_id(id.as_str())));
    let reason = shown
        .gpu
        .unavailable
        .as_ref()
        .map(|unavailable| unavailable.detail.clone())
        .filter(|reason| !reason.is_empty());
    // The model identifies the vendor, and a tile is narrow.
    let name = format!("{}\u{a0}· {}", shown.gpu.index, shown.gpu.name.trim_start_matches("NVIDIA "));
    let used = reading.utilization_percent;
    let scale = used.map(|used| {
        view! { <ProgressBar percent=Some(used) label=words.utilisation_of.of(&name) over={state != GpuState::Busy}/> }
    });
    let sensor_texts = [gpu_readings::temperature(&reading), gpu_readings::power(&reading)]
        .into_iter()
        .filter(|text| text != gpu_readings::NO_VALUE);
    let heat = sensor_texts.collect::<Vec<_>>().join(" · ");
    // Usually there are no errors; only the table shows a zero.
    let ecc = reading.ecc_errors.filter(|errors| *errors > 0);
    let heat = (!heat.is_empty()).then(|| view! { <span class="gpu-tile-line">{heat}</span> });
    view! {
        <li>
            <a class=format!("gpu-tile {}", edge_class(state)) href=href title=shown.gpu.uuid.clone()>
                <span class="gpu-tile-head">
                    <span class="truncate">{name.clone()}</span>
                    <span class=style.class><Icon glyph=style.glyph/></span>
                </span>
                <span class="gpu-tile-state">
                    <span class="truncate">{holder.unwrap_or_else(|| style.label.to_owned())}</span>
                    <span class="sr-only">", "{style.label}</span>
                    <span class="gpu-tile-value">{used.map(|used| t().format_percent(used))}</span>
                </span>
                {submitter.map(|submitter| view! { <span class="gpu-tile-line truncate">{submitter}</span> })}
                {scale}
                <Sparkline values=shown.lately.clone() label=words.utilisation_of.of(&name)/>
                <span class="gpu-tile-line">{gpu_readings::memory(&shown)}</span>
                {heat}
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
