//! GPUs as squares, of which hundreds are seen at once: the edge and its sign are the state, the level is the use.

use leptos::prelude::*;

use super::gpu_state::{edge, look};
use super::gpu_table::Row;
use super::gpu_tile::way;
use super::icon::Icon;
use crate::domain::ids::WorkerId;
use crate::protocol::status::GpuState;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The GPUs of one worker, each with all that is told of it as its name.
#[component]
pub(crate) fn GpuSquares(worker: WorkerId, name: String, rows: Vec<Row>) -> impl IntoView {
    let square = |Row { gpu: shown, job }: Row| {
        let used = shown.reading.as_ref().and_then(|reading| reading.utilization_percent);
        let told = [
            Some(format!("{name}\u{a0}· {}", shown.gpu.index)),
            Some(shown.gpu.name.clone()),
            Some(look(shown.state).word.to_owned()),
            used.map(|used| t().percent(used)),
            job.map(|(job, _)| job),
        ];
        let told = told.into_iter().flatten().collect::<Vec<_>>().join(", ");
        view! {
            <li>
                <a class=class(shown.state) href=way(&worker, &shown) title=told.clone() aria-label=told>
                    <Inside state=shown.state used=used/>
                </a>
            </li>
        }
    };
    view! { <ul class="gpu-squares">{rows.into_iter().map(square).collect_view()}</ul> }.erased()
}

/// What the signs mean.
#[component]
pub(crate) fn Legend() -> impl IntoView {
    let words = &t().gpus;
    let sign = |state: GpuState, used, word| {
        view! {
            <li><span class=class(state)><Inside state=state used=used/></span>{word}</li>
        }
    };
    let states = GpuState::ALL.iter().map(|state| sign(*state, None, look(*state).word)).collect_view();
    view! {
        <ul class="gpu-legend" aria-label=words.legend>
            {states}
            {sign(GpuState::Busy, Some(50.0), words.level)}
        </ul>
    }
    .erased()
}

#[component]
fn Inside(state: GpuState, used: Option<f64>) -> impl IntoView {
    let level = used.unwrap_or_default().clamp(0.0, 100.0);
    view! {
        <svg viewBox="0 0 1 100" preserveAspectRatio="none" aria-hidden="true">
            <rect y=format!("{:.0}", 100.0 - level) width="1" height=format!("{level:.0}")></rect>
        </svg>
        <Icon glyph=look(state).glyph/>
    }
    .erased()
}

fn class(state: GpuState) -> String {
    format!("gpu-square {}", edge(state))
}
