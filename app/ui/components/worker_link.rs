//! The names of workers: links for whoever may see them.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::protocol::queue::JobView;
use crate::ui::erase::Erase;
use crate::ui::prefs::Prefs;

/// A worker's name.
#[component]
pub(crate) fn NamedWorker(id: WorkerId, name: String) -> impl IntoView {
    if use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminWorkers)) {
        view! { <a class="quiet-link wrap-anywhere" href=format!("/admin/workers/{id}")>{name}</a> }.erased()
    } else {
        view! { <span class="wrap-anywhere">{name}</span> }.erased()
    }
}

/// The worker that has a job, or had it last; or a dash.
#[component]
pub(crate) fn WorkerLink(job: JobView) -> impl IntoView {
    match (job.worker_id, job.worker_name) {
        (Some(id), Some(name)) => view! { <NamedWorker id=id name=name/> }.erased(),
        _ => view! { <span class="text-muted">"–"</span> }.erased(),
    }
}
