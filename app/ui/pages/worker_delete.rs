//! Confirms that a worker is to be deleted: a page of its own, so that it works without JavaScript.

use leptos::prelude::*;

use super::server_rendered_page::server_rendered_page;
use super::worker::{deletion_blocker, worker_problem_page};
use crate::domain::ids::WorkerId;
use crate::protocol::workers::WorkerView;
use crate::ui::backend::use_page_backend;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::worker_badge::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

#[component]
pub(crate) fn WorkerDeletePage() -> impl IntoView {
    let page_backend = use_page_backend();
    let fetch = move |id: WorkerId| page_backend.editable_worker(id);
    server_rendered_page(
        fetch,
        |worker| view! { <DeleteConfirmation worker=worker/> }.into_erased(),
        worker_problem_page,
    )
}

#[component]
fn DeleteConfirmation(worker: WorkerView) -> impl IntoView {
    let words = t();
    let (job_count, blocker) = (worker.jobs.len() as u64, deletion_blocker(&worker));
    let disabled = blocker.is_some();
    let worker_url = format!("/admin/workers/{}", worker.id);
    view! {
        <PageHeader title=words.server_pages().delete.title.of(&worker.name) above=("/admin/workers", words.workers.title)/>
        <div class="panel form">
            <p class="flex flex-wrap gap-x-3"><WorkerBadge worker=worker.clone()/></p>
            <p>{words.server_pages().delete.text}</p>
            {blocker.map(|reason| view! {
                <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p id="why">{reason}</p></div>
            })}
            {(job_count > 0 && !disabled).then(|| view! {
                <div class="notice notice-warn mb-0"><Icon glyph=Glyph::Warning/><p>{words.server_pages().delete.busy.of(job_count)}</p></div>
            })}
            <form method="post" action=format!("/ui/workers/{}/delete", worker.id) class="form-actions">
                <button class="btn btn-error" disabled=disabled aria-describedby=disabled.then_some("why")><Icon glyph=Glyph::Trash/>{words.server_pages().delete.confirm}</button>
                <a class="btn btn-ghost" href=worker_url>{words.server_pages().delete.keep}</a>
            </form>
        </div>
    }
    .into_erased()
}
