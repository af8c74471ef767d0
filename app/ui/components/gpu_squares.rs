//! GPUs as squares, so small that hundreds fit on a page: border and icon show the state, the fill level the
//! utilization.

use leptos::prelude::*;

use super::gpu_state::{edge_class, gpu_state_style};
use super::gpu_table::GpuEntry;
use super::gpu_tile::gpu_link;
use super::icon::Icon;
use crate::domain::ids::WorkerId;
use crate::protocol::status::GpuState;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The GPUs of one worker. The tooltip and accessible name of each square describe its GPU.
#[component]
pub(crate) fn GpuSquares(worker: WorkerId, name: String, rows: Vec<GpuEntry>) -> impl IntoView {
    let square = |GpuEntry { gpu: gpu_view, job }: GpuEntry| {
        let utilization = gpu_view.reading.as_ref().and_then(|reading| reading.utilization_percent);
        let details = [
            Some(format!("{name}\u{a0}· {}", gpu_view.gpu.index)),
            Some(gpu_view.gpu.name.clone()),
            Some(gpu_state_style(gpu_view.state).label.to_owned()),
            utilization.map(|utilization| t().format_percent(utilization)),
            job.map(|(job, _)| job),
        ];
        let details = details.into_iter().flatten().collect::<Vec<_>>().join(", ");
        view! {
            <li>
                <a class=square_class(gpu_view.state) href=gpu_link(&worker, &gpu_view) title=details.clone() aria-label=details>
                    <SquareContent state=gpu_view.state utilization=utilization/>
                </a>
            </li>
        }
    };
    view! { <ul class="gpu-squares">{rows.into_iter().map(square).collect_view()}</ul> }.into_erased()
}

/// The legend of the squares.
#[component]
pub(crate) fn GpuLegend() -> impl IntoView {
    let words = &t().gpus;
    let item = |state: GpuState, utilization, label| {
        view! {
            <li><span class=square_class(state)><SquareContent state=state utilization=utilization/></span>{label}</li>
        }
    };
    let states = GpuState::ALL.iter().map(|state| item(*state, None, gpu_state_style(*state).label)).collect_view();
    view! {
        <ul class="gpu-legend" aria-label=words.legend>
            {states}
            {item(GpuState::Busy, Some(50.0), words.level)}
        </ul>
    }
    .into_erased()
}

#[component]
fn SquareContent(state: GpuState, utilization: Option<f64>) -> impl IntoView {
    let level = utilization.unwrap_or_default().clamp(0.0, 100.0);
    view! {
        <svg viewBox="0 0 1 100" preserveAspectRatio="none" aria-hidden="true">
            <rect y=format!("{:.0}", 100.0 - level) width="1" height=format!("{level:.0}")></rect>
        </svg>
        <Icon glyph=gpu_state_style(state).glyph/>
    }
    .into_erased()
}

fn square_class(state: GpuState) -> String {
    format!("gpu-square {}", edge_class(state))
}
