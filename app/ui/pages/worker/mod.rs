//! One worker: how it stands, how its GPUs do, what it did, what happened with it. The views are links, so each has an
//! address.

#[cfg(feature = "ssr")]
pub(in crate::ui) mod events;
mod facts;
mod frame;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod jobs;
mod last_day;
mod overview;
mod tabs;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use self::frame::WorkerFrame;
pub(in crate::ui::pages) use self::frame::unknown;
use self::overview::{Arrival, Overview};
use self::tabs::Tab;
use super::not_found::no_such;
use super::{Skeleton, use_port};
use crate::domain::ids::WorkerId;
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerView;
use crate::ui::components::gpu_charts::WorkerCharts;
use crate::ui::components::gpu_table::GpuTable;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, Way};
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

/// A worker's page.
#[component]
pub(crate) fn WorkerPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| WorkerId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <Worker id=id/> }.erased(),
        None => unknown(no_such()),
    }
}

#[component]
fn Worker(id: WorkerId) -> impl IntoView {
    let port = use_port();
    let worker = Resource::new(|| (), {
        let (port, id) = (port.clone(), id.clone());
        move |()| port.worker(id.clone())
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match worker.await {
                Ok(first) => view! { <Shown first=first id=id port=port/> }.erased(),
                Err(problem) => unknown(problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Shown(first: WorkerView, id: WorkerId, port: SharedPort) -> impl IntoView {
    let created = created_now(&id);
    let is_new = created.is_some() || first.last_heartbeat.is_none();
    let arrival = is_new.then_some(Arrival { created });
    let worker = refreshed(first, &[Topic::Workers, Topic::Worker(id.clone())], {
        let id = id.clone();
        move || port.worker(id.clone())
    });
    let params = use_query_map();
    let tab = Memo::new(move |_| params.with(Tab::shown));
    let shown = move || match tab.get() {
        Tab::Gpus => view! {
            <div class="space-y-6">
                <GpuTable worker=worker/>
                <WorkerCharts id=id.clone()/>
            </div>
        }
        .erased(),
        _ => view! { <Overview worker=worker arrival=arrival.clone()/> }.erased(),
    };
    view! { <WorkerFrame worker=worker tab=tab/> {shown} }.erased()
}

/// The answer to the creation of this very worker, if it is this page's flash.
fn created_now(id: &WorkerId) -> Option<(String, Vec<Way>)> {
    match use_context::<CurrentFlash>()?.0.get_untracked()? {
        Flash::Created { worker, ways } if worker.worker_id == *id => Some((worker.token, ways)),
        _ => None,
    }
}
