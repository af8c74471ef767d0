//! The button that drains a worker, or takes that back. The page shows it at once: nothing is lost if it is refused.

use std::sync::Arc;

use leptos::prelude::*;

use super::action::{ActionButton, ConfirmedAction, Deed, Said, Turn};
use super::icon::Glyph;
use crate::protocol::status::{WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::flash::Undo;
use crate::ui::i18n::t;

/// The button.
#[component]
pub(crate) fn DrainSwitch(worker: RwSignal<WorkerView>) -> impl IntoView {
    let (words, said) = (&t().worker, &t().flash);
    let id = worker.with_untracked(|worker| worker.id.clone());
    let deed = {
        let id = id.clone();
        move |verb: &str| Deed {
            form: format!("/ui/workers/{id}/{verb}"),
            method: "POST",
            rest: format!("/api/admin/workers/{id}/{verb}"),
        }
    };
    let draining = Memo::new(move |_| worker.with(|worker| worker.draining));
    let ephemeral = Memo::new(move |_| worker.with(|worker| worker.worker_type == Some(WorkerType::Ephemeral)));
    let turn = move |drains: bool| -> Turn {
        Arc::new(move |goes: bool| {
            worker.update(|worker| turned(worker, drains == goes));
            // The button is another one now, in the same place.
            request_animation_frame(|| browser::focus(&["[data-key=d]"]));
        })
    };
    move || {
        if draining.get() {
            let said = Said { text: said.worker_resumed, undo: Some(Undo::resume(&id)) };
            view! {
                <ActionButton deed=deed("resume") label=words.resume glyph=Glyph::Play said=Some(said) turn=Some(turn(false)) key="d"/>
            }
            .erased()
        } else {
            let said = Said { text: said.worker_draining, undo: Some(Undo::drain(&id)) };
            view! {
                <ConfirmedAction
                    deed=deed("drain")
                    label=words.drain
                    text=if ephemeral.get() { words.drain_ephemeral_text } else { words.drain_text }
                    confirm=words.drain_confirm
                    keep=t().common.cancel
                    glyph=Glyph::Drain
                    class="btn btn-sm btn-primary"
                    said=Some(said)
                    turn=Some(turn(true))
                    key="d"
                    ask="drain"
                />
            }
            .erased()
        }
    }
}

/// Shows a worker as it will be.
fn turned(worker: &mut WorkerView, drains: bool) {
    worker.draining = drains;
    worker.status = match (worker.status, drains) {
        (WorkerStatus::Idle | WorkerStatus::Busy, true) => WorkerStatus::Draining,
        (WorkerStatus::Draining, false) if worker.jobs.is_empty() => WorkerStatus::Idle,
        (WorkerStatus::Draining, false) => WorkerStatus::Busy,
        (status, _) => status,
    };
}
