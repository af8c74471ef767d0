//! One job: how it stands, what it made, what was asked for. The views are links, so each has an address.

mod actions;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod cancel;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod configuration;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod events;
mod facts;
mod files;
mod frame;
mod gallery;
mod overview;
mod tabs;
mod why;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use self::files::Files;
use self::frame::{JobFrame, unknown};
use self::gallery::Gallery;
use self::overview::Overview;
use self::tabs::Tab;
use super::not_found::no_such;
use super::{Skeleton, use_port};
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::queue::JobView;
use crate::protocol::topic::Topic;
use crate::ui::empty_state::{JobStage, Panel, live_text};
use crate::ui::erase::Erase;
use crate::ui::live::refreshed;
use crate::ui::port::{Answer, SharedPort};

/// The job and what it made: every view shows some of both.
type Snapshot = (JobView, ArtifactsPage);

fn ask(port: &SharedPort, id: &JobId) -> Answer<Snapshot> {
    let (port, id) = (port.clone(), id.clone());
    Box::pin(async move { Ok((port.job(id.clone()).await?, port.job_artifacts(id).await?)) })
}

/// A job's page.
#[component]
pub(crate) fn JobPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <Job id=id/> }.erased(),
        None => unknown(no_such()),
    }
}

#[component]
fn Job(id: JobId) -> impl IntoView {
    let port = use_port();
    let snapshot = Resource::new(|| (), {
        let (port, id) = (port.clone(), id.clone());
        move |()| ask(&port, &id)
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match snapshot.await {
                Ok(first) => view! { <Shown first=first id=id port=port/> }.erased(),
                Err(problem) => unknown(problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Shown(first: Snapshot, id: JobId, port: SharedPort) -> impl IntoView {
    let snapshot = refreshed(first, &[Topic::Job(id.clone())], {
        let (port, id) = (port.clone(), id.clone());
        move || ask(&port, &id)
    });
    let job = Memo::new(move |_| snapshot.with(|(job, _)| job.clone()));
    let files = Memo::new(move |_| snapshot.with(|(_, files)| files.clone()));
    let stage = Memo::new(move |_| job.with(JobStage::of));
    let params = use_query_map();
    let tab = Memo::new(move |_| params.with(Tab::shown));
    let shown = move || match tab.get() {
        Tab::Samples => view! { <Gallery id=id.clone() files=files empty=live_text(Panel::Samples, stage)/> }.erased(),
        Tab::Files => view! { <Files files=files stage=stage/> }.erased(),
        _ => view! { <Overview id=id.clone() port=port.clone() job=job files=files stage=stage/> }.erased(),
    };
    view! { <JobFrame job=job tab=tab/> {shown} }.erased()
}
