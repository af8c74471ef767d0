//! The pages of one worker. Its views are links, so each has an address.

#[cfg(feature = "ssr")]
pub(in crate::ui) mod events;
mod facts;
mod header;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod jobs;
mod last_day;
mod overview;
mod tabs;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use self::header::WorkerHeader;
#[cfg(feature = "ssr")]
pub(in crate::ui::pages) use self::header::deletion_blocker;
pub(in crate::ui::pages) use self::header::worker_problem_page;
use self::overview::{WorkerOnboarding, WorkerOverview};
use self::tabs::WorkerTab;
use super::not_found::not_found_problem;
use crate::domain::ids::WorkerId;
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerView;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::gpu_charts::WorkerGpuCharts;
use crate::ui::components::gpu_table::GpuTable;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, StartMethod};
use crate::ui::live::live_signal;

#[component]
pub(crate) fn WorkerPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| WorkerId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <WorkerLoader id=id/> }.into_erased(),
        None => worker_problem_page(not_found_problem()),
    }
}

#[component]
fn WorkerLoader(id: WorkerId) -> impl IntoView {
    let backend = use_backend();
    let worker = Resource::new(|| (), {
        let (backend, id) = (backend.clone(), id.clone());
        move |()| backend.worker(id.clone())
    });
    let shown = move || {
        let (backend, id) = (backend.clone(), id.clone());
        Suspend::new(async move {
            match worker.await {
                Ok(first) => view! { <WorkerContent first=first id=id backend=backend/> }.into_erased(),
                Err(problem) => worker_problem_page(problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn WorkerContent(first: WorkerView, id: WorkerId, backend: SharedBackend) -> impl IntoView {
    let new_token = created_from_flash(&id);
    let is_new = new_token.is_some() || first.last_heartbeat.is_none();
    let onboarding = is_new.then_some(WorkerOnboarding { new_token });
    let worker = live_signal(first, &[Topic::Workers, Topic::Worker(id.clone())], {
        let id = id.clone();
        move || backend.worker(id.clone())
    });
    let params = use_query_map();
    let tab = Memo::new(move |_| params.with(WorkerTab::from_params));
    let shown = move || match tab.get() {
        WorkerTab::Gpus => view! {
            <div class="space-y-6">
                <GpuTable worker=worker/>
                <WorkerGpuCharts id=id.clone()/>
            </div>
        }
        .into_erased(),
        _ => view! { <WorkerOverview worker=worker onboarding=onboarding.clone()/> }.into_erased(),
    };
    view! { <WorkerHeader worker=worker tab=tab/> {shown} }.into_erased()
}

/// The token and start methods of this worker, if the previous request created it.
fn created_from_flash(id: &WorkerId) -> Option<(String, Vec<StartMethod>)> {
    match use_context::<CurrentFlash>()?.0.get_untracked()? {
        Flash::Created { worker, start_methods } if worker.worker_id == *id => Some((worker.token, start_methods)),
        _ => None,
    }
}
