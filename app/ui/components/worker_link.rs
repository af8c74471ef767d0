//! Names of workers, as links if the user is permitted to view the fleet.

use leptos::prelude::*;

use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::protocol::jobs::JobView;
use crate::ui::erase::Erase;
use crate::ui::permissions::has_permission;

#[component]
pub(crate) fn WorkerNameLink(id: WorkerId, name: String) -> impl IntoView {
    if has_permission(Permission::FleetView) {
        view! { <a class="quiet-link wrap-anywhere" href=format!("/admin/workers/{id}") title=name.clone()>{name.clone()}</a> }
            .into_erased()
    } else {
        view! { <span class="wrap-anywhere" title=name.clone()>{name.clone()}</span> }.into_erased()
    }
}

/// The worker of the last attempt of a job; a dash if there is none.
#[component]
pub(crate) fn WorkerLink(job: JobView) -> impl IntoView {
    match (job.worker_id, job.worker_name) {
        (Some(id), Some(name)) => view! { <WorkerNameLink id=id name=name/> }.into_erased(),
        _ => view! { <span class="text-muted">"–"</span> }.into_erased(),
    }
}
