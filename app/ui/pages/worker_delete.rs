//! Whether to delete a worker: a page of its own, so that it asks without JavaScript too.

use leptos::prelude::*;

use super::plain_page::plain_page;
use super::use_port;
use super::worker::unknown;
use crate::domain::ids::WorkerId;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Says what will happen, and asks.
#[component]
pub(crate) fn WorkerDeletePage() -> impl IntoView {
    let port = use_port();
    plain_page(move |id: WorkerId| port.worker(id), |worker| view! { <Question worker=worker/> }.erased(), unknown)
}

#[component]
fn Question(worker: WorkerView) -> impl IntoView {
    let words = t();
    let (held, connected) = (worker.jobs.len() as u64, worker.status != WorkerStatus::Offline);
    let page = format!("/admin/workers/{}", worker.id);
    view! {
        <PageHead title=words.plain().delete.title.of(&worker.name) above=("/admin/workers", words.workers.title)/>
        <div class="panel form">
            <p class="flex flex-wrap gap-x-3"><WorkerBadge worker=worker.clone()/></p>
            <p>{words.plain().delete.text}</p>
            {connected.then(|| view! {
                <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p id="why">{words.worker.delete_offline}</p></div>
            })}
            {(held > 0 && !connected).then(|| view! {
                <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p>{words.plain().delete.busy.of(held)}</p></div>
            })}
            <form method="post" action=format!("/ui/workers/{}/delete", worker.id) class="form-actions">
                <button class="btn btn-error" disabled=connected aria-describedby=connected.then_some("why")><Icon glyph=Glyph::Trash/>{words.plain().delete.confirm}</button>
                <a class="btn btn-ghost" href=page>{words.plain().delete.keep}</a>
            </form>
        </div>
    }
    .erased()
}
