//! GPUs as tiles: how busy each is, how it does, and who has it.

use leptos::prelude::*;

use super::chart::spark::Spark;
use super::gpu_state::{edge, look};
use super::gpu_table::Row;
use super::icon::Icon;
use super::scale::Scale;
use crate::domain::ids::WorkerId;
use crate::protocol::gpu::GpuView;
use crate::protocol::status::GpuState;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::{format, readings};

/// The GPUs of one worker.
#[component]
pub(crate) fn GpuTiles(worker: WorkerId, rows: Vec<Row>) -> impl IntoView {
    let tiles = rows.into_iter().map(|row| view! { <GpuTile worker=worker.clone() row=row/> });
    view! { <ul class="gpu-tiles">{tiles.collect_view()}</ul> }.erased()
}

/// One GPU; it leads to the job that has it, or to the GPUs of its worker.
#[component]
fn GpuTile(worker: WorkerId, row: Row) -> impl IntoView {
    let words = &t().gpus;
    let Row { gpu: shown, job } = row;
    let state = shown.state;
    let look = look(state);
    let reading = shown.reading.clone().unwrap_or_default();
    let href = way(&worker, &shown);
    let (job, person) = job.unzip();
    let holder = shown.job_id.as_ref().map(|id| job.unwrap_or_else(|| format::short_id(id.as_str())));
    let why = shown.gpu.withheld.as_ref().map(|withheld| withheld.detail.clone()).filter(|why| !why.is_empty());
    // Whose it is can be told from the model, and a tile is narrow.
    let name = format!("{}\u{a0}· {}", shown.gpu.index, shown.gpu.name.trim_start_matches("NVIDIA "));
    let used = reading.utilization_percent;
    let scale = used.map(|used| {
        view! { <Scale percent=Some(used) label=words.utilisation_of.of(&name) over={state != GpuState::Busy}/> }
    });
    let told = [readings::temperature(&reading), readings::power(&reading)]
        .into_iter()
        .filter(|told| told != readings::NOTHING);
    let heat = told.collect::<Vec<_>>().join(" · ");
    // None is the usual, and the table says it.
    let ecc = reading.ecc_errors.filter(|errors| *errors > 0);
    let heat = (!heat.is_empty()).then(|| view! { <span class="gpu-tile-line">{heat}</span> });
    view! {
        <li>
            <a class=format!("gpu-tile {}", edge(state)) href=href title=shown.gpu.uuid.clone()>
                <span class="gpu-tile-head">
                    <span class="truncate">{name.clone()}</span>
                    <span class=look.class><Icon glyph=look.glyph/></span>
                </span>
                <span class="gpu-tile-state">
                    <span class="truncate">{holder.unwrap_or_else(|| look.word.to_owned())}</span>
                    <span class="sr-only">", "{look.word}</span>
                    <span class="gpu-tile-value">{used.map(|used| t().percent(used))}</span>
                </span>
                {person.map(|person| view! { <span class="gpu-tile-line truncate">{person}</span> })}
                {scale}
                <Spark values=shown.lately.clone() label=words.utilisation_of.of(&name)/>
                <span class="gpu-tile-line">{readings::memory(&shown)}</span>
                {heat}
                {ecc.map(|errors| view! { <span class="gpu-tile-line">{words.ecc.of(errors)}</span> })}
                {why.map(|why| view! { <span class="gpu-tile-line wrap-anywhere">{why}</span> })}
            </a>
        </li>
    }
    .erased()
}

/// To the job that has it, or to the GPUs of its worker.
pub(super) fn way(worker: &WorkerId, gpu: &GpuView) -> String {
    match &gpu.job_id {
        Some(job) => format!("/jobs/{job}"),
        None => format!("/admin/workers/{worker}?show=gpus"),
    }
}
