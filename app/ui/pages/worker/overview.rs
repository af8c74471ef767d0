//! The main view of a worker: health, GPUs, jobs, token, and properties.

use leptos::prelude::*;

use super::facts::WorkerFacts;
use super::tabs::WorkerTab;
use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::{WorkerJobView, WorkerView};
use crate::ui::components::action::MoreLink;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::gpu_table::gpu_entries;
use crate::ui::components::gpu_tile::GpuTiles;
use crate::ui::components::progress_bar::ProgressBar;
use crate::ui::components::status::JobBadge;
use crate::ui::components::worker_connect::{FirstContact, NewTokenPanel};
use crate::ui::components::worker_token::{TokenConflictAlert, TokenPanel};
use crate::ui::empty_state::no_jobs_text;
use crate::ui::erase::Erase;
use crate::ui::flash::StartMethod;
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::permissions::has_permission;

/// Data for a new worker: the page waits for its first contact, and shows the token once if the worker was just
/// created.
#[derive(Clone)]
pub(super) struct WorkerOnboarding {
    pub new_token: Option<(String, Vec<StartMethod>)>,
}

#[component]
pub(super) fn WorkerOverview(worker: RwSignal<WorkerView>, onboarding: Option<WorkerOnboarding>) -> impl IntoView {
    let words = &t().worker;
    let unverified = Memo::new(move |_| worker.with(|worker| worker.tls_verify == Some(false)));
    let unhealthy_reason = Memo::new(move |_| {
        worker.with(|worker| worker.unhealthy_reason.clone().filter(|_| worker.status != WorkerStatus::Offline))
    });
    let administers = has_permission(Permission::AdminWorkers);
    let onboarding_panels = onboarding.filter(|_| administers).map(|WorkerOnboarding { new_token }| {
        view! {
            <FirstContact worker=worker token_shown=new_token.is_some()/>
            {new_token.map(|(token, start_methods)| view! { <NewTokenPanel token=token start_methods=start_methods/> })}
        }
    });
    view! {
        {move || unverified.get().then(|| view! { <p class="mb-4 max-w-prose text-muted">{words.unverified_hint}</p> })}
        {move || unhealthy_reason.get().map(|reason| view! {
            <p class="mb-4 max-w-prose text-muted wrap-anywhere">{words.unhealthy_because.of(&reason)}</p>
        })}
        <TokenConflictAlert worker=worker/>
        <div class="space-y-6">
            {onboarding_panels}
            <GpuPanel worker=worker/>
            <div class="worker-grid">
                <div class="space-y-6">
                    <CurrentJobs worker=worker/>
                    {administers.then(|| view! { <TokenPanel worker=worker/> })}
                </div>
                <WorkerFacts worker=worker/>
            </div>
        </div>
    }
    .into_erased()
}

/// All GPUs at a glance; their charts are in another view.
#[component]
fn GpuPanel(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = t();
    let id = worker.with_untracked(|worker| worker.id.clone());
    let gpus = Memo::new(move |_| worker.with(gpu_entries));
    let panel = move |id: WorkerId| {
        view! {
            <section class="panel" aria-labelledby="gpus">
                <h2 id="gpus" class="panel-head">
                    {words.gpus.title}
                    <MoreLink href=WorkerTab::Gpus.href(&id) label=words.charts.gpus/>
                </h2>
                {move || view! { <GpuTiles worker=id.clone() rows=gpus.get()/> }}
            </section>
        }
    };
    let has_gpus = Memo::new(move |_| gpus.with(|gpus| !gpus.is_empty()));
    (move || has_gpus.get().then(|| panel(id.clone()))).into_erased()
}

#[component]
fn CurrentJobs(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().worker;
    let jobs = Memo::new(move |_| worker.with(|worker| worker.jobs.clone()));
    let none = Memo::new(move |_| worker.with(no_jobs_text));
    view! {
        <section class="panel" aria-labelledby="held">
            <h2 id="held" class="panel-head">{words.jobs}</h2>
            {move || {
                if jobs.with(Vec::is_empty) {
                    view! { <EmptyPanel glyph=Glyph::Gpu title=words.no_jobs text=none.get()/> }.into_erased()
                } else {
                    view! { <ul class="rows">{jobs.get().into_iter().map(|job| view! { <CurrentJobRow job=job/> }).collect_view()}</ul> }.into_erased()
                }
            }}
        </section>
    }
    .into_erased()
}

#[component]
fn CurrentJobRow(job: WorkerJobView) -> impl IntoView {
    view! {
        <li class="running-job">
            <span class="min-w-0">
                <a class="row-link" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
                <span class="row-sub font-mono">{format::short_id(job.job_id.as_str())}</span>
            </span>
            <JobBadge status=job.status/>
            <span class="progress-cell">
                <ProgressBar percent=job.percent label=t().job.progress_of.of(&job.config_name)/>
                <span class="progress-text">{job.percent.map(|percent| t().format_percent(percent))}</span>
            </span>
        </li>
    }
    .into_erased()
}
