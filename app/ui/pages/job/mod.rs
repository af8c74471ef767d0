//! The pages of one job. Its views are links, so each has an address.

mod actions;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod cancel;
mod charts;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod configuration;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod describe;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod events;
mod explanation;
mod facts;
mod family;
mod files;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod fork;
mod gallery;
mod header;
mod layout;
mod log;
mod overview;
mod results;
mod sentence;
mod tabs;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use self::charts::ChartsTab;
use self::files::JobFiles;
use self::gallery::Gallery;
use self::header::{JobHeader, job_problem_page};
use self::overview::JobOverview;
pub(in crate::ui) use self::tabs::{JobTab, JobTabs, TabContents};
use super::not_found::not_found_problem;
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::jobs::JobView;
use crate::protocol::topic::Topic;
use crate::ui::backend::{BackendFuture, SharedBackend, use_backend};
use crate::ui::components::gpu_charts::JobGpuCharts;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::empty_state::{JobPanel, JobStage, empty_text_signal};
use crate::ui::erase::Erase;
use crate::ui::job_feed::JobFeed;
use crate::ui::live::live_signal;

/// A job and its artifacts; every view shows some of both.
type JobSnapshot = (JobView, ArtifactsPage);

fn fetch_snapshot(backend: &SharedBackend, id: &JobId) -> BackendFuture<JobSnapshot> {
    let (backend, id) = (backend.clone(), id.clone());
    Box::pin(async move { Ok((backend.job(id.clone()).await?, backend.job_artifacts(id).await?)) })
}

#[component]
pub(crate) fn JobPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <JobLoader id=id/> }.into_erased(),
        None => job_problem_page(not_found_problem()),
    }
}

#[component]
fn JobLoader(id: JobId) -> impl IntoView {
    let backend = use_backend();
    let snapshot = Resource::new(|| (), {
        let (backend, id) = (backend.clone(), id.clone());
        move |()| fetch_snapshot(&backend, &id)
    });
    let shown = move || {
        let (backend, id) = (backend.clone(), id.clone());
        Suspend::new(async move {
            match snapshot.await {
                Ok(first) => view! { <JobContent first=first id=id backend=backend/> }.into_erased(),
                Err(problem) => job_problem_page(problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

/// Removes the progress, so that a view without it does not change at every step.
fn without_progress(job: &JobView) -> JobView {
    JobView { progress: None, ..job.clone() }
}

#[component]
fn JobContent(first: JobSnapshot, id: JobId, backend: SharedBackend) -> impl IntoView {
    let snapshot = live_signal(first, &[Topic::Job(id.clone())], {
        let (backend, id) = (backend.clone(), id.clone());
        move || fetch_snapshot(&backend, &id)
    });
    // Of every view: the header shows the progress.
    JobFeed::start(id.clone(), backend.clone(), snapshot);
    let job = Memo::new(move |_| snapshot.with(|(job, _)| job.clone()));
    let stable_job = Memo::new(move |_| job.with(without_progress));
    let files = Memo::new(move |_| snapshot.with(|(_, files)| files.clone()));
    let stage = Memo::new(move |_| job.with(JobStage::new));
    let params = use_query_map();
    let tab = Memo::new(move |_| params.with(JobTab::from_params));
    let shown = move || {
        let id = id.clone();
        match tab.get() {
            JobTab::Charts => view! { <ChartsTab id=id job=stable_job stage=stage/> }.into_erased(),
            JobTab::Samples => {
                view! { <Gallery id=id files=files empty=empty_text_signal(JobPanel::Samples, stage)/> }.into_erased()
            }
            JobTab::Artifacts => view! { <JobFiles files=files stage=stage/> }.into_erased(),
            JobTab::System => view! { <JobGpuCharts id=id/> }.into_erased(),
            JobTab::Overview | JobTab::Log | JobTab::Configuration | JobTab::Events => {
                let backend = backend.clone();
                view! { <JobOverview id=id backend=backend job=job stable_job=stable_job files=files/> }.into_erased()
            }
        }
    };
    view! { <JobHeader job=job files=files tab=tab/> {shown} }.into_erased()
}
