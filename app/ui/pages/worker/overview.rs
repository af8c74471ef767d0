//! What an operator wants to see first: whether it is well, what its GPUs do, what it holds, what it is.

use leptos::prelude::*;

use super::facts::Facts;
use super::tabs::Tab;
use crate::domain::ids::WorkerId;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::{HeldJob, WorkerView};
use crate::ui::components::action::MoreLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::gpu_table::rows;
use crate::ui::components::gpu_tile::GpuTiles;
use crate::ui::components::icon::Glyph;
use crate::ui::components::scale::Scale;
use crate::ui::components::status::JobBadge;
use crate::ui::components::worker_connect::{FirstContact, TokenOnce};
use crate::ui::components::worker_token::{TokenAlarm, TokenPanel};
use crate::ui::empty_state::no_jobs_text;
use crate::ui::erase::Erase;
use crate::ui::flash::Way;
use crate::ui::format;
use crate::ui::i18n::t;

/// A worker that is new: it is waited for, and if it was made just now, its token is shown this once.
#[derive(Clone)]
pub(super) struct Arrival {
    pub created: Option<(String, Vec<Way>)>,
}

/// See the module.
#[component]
pub(super) fn Overview(worker: RwSignal<WorkerView>, arrival: Option<Arrival>) -> impl IntoView {
    let words = &t().worker;
    let unverified = Memo::new(move |_| worker.with(|worker| worker.tls_verify == Some(false)));
    let unfit = Memo::new(move |_| {
        worker.with(|worker| worker.unfit.clone().filter(|_| worker.status != WorkerStatus::Offline))
    });
    let arrives = arrival.map(|Arrival { created }| {
        view! {
            <FirstContact worker=worker token_shown=created.is_some()/>
            {created.map(|(token, ways)| view! { <TokenOnce token=token ways=ways/> })}
        }
    });
    view! {
        {move || unverified.get().then(|| view! { <p class="mb-4 max-w-prose text-muted">{words.unverified_hint}</p> })}
        {move || unfit.get().map(|why| view! {
            <p class="mb-4 max-w-prose text-muted wrap-anywhere">{words.unfit_because.of(&why)}</p>
        })}
        <TokenAlarm worker=worker/>
        <div class="space-y-6">
            {arrives}
            <Gpus worker=worker/>
            <div class="worker-grid">
                <div class="space-y-6">
                    <Held worker=worker/>
                    <TokenPanel worker=worker/>
                </div>
                <Facts worker=worker/>
            </div>
        </div>
    }
    .erased()
}

/// Each GPU at a glance; how they did is a view of its own.
#[component]
fn Gpus(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = t();
    let id = worker.with_untracked(|worker| worker.id.clone());
    let all = Memo::new(move |_| worker.with(rows));
    let panel = move |id: WorkerId| {
        view! {
            <section class="panel" aria-labelledby="gpus">
                <h2 id="gpus" class="panel-head">
                    {words.gpus.title}
                    <MoreLink href=Tab::Gpus.href(&id) label=words.charts.gpus/>
                </h2>
                {move || view! { <GpuTiles worker=id.clone() rows=all.get()/> }}
            </section>
        }
    };
    let any = Memo::new(move |_| all.with(|all| !all.is_empty()));
    (move || any.get().then(|| panel(id.clone()))).erased()
}

#[component]
fn Held(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().worker;
    let jobs = Memo::new(move |_| worker.with(|worker| worker.jobs.clone()));
    let none = Memo::new(move |_| worker.with(no_jobs_text));
    view! {
        <section class="panel" aria-labelledby="held">
            <h2 id="held" class="panel-head">{words.jobs}</h2>
            {move || {
                if jobs.with(Vec::is_empty) {
                    view! { <Empty glyph=Glyph::Gpu title=words.no_jobs text=none.get()/> }.erased()
                } else {
                    view! { <ul class="rows">{jobs.get().into_iter().map(|job| view! { <HeldRow job=job/> }).collect_view()}</ul> }.erased()
                }
            }}
        </section>
    }
    .erased()
}

#[component]
fn HeldRow(job: HeldJob) -> impl IntoView {
    view! {
        <li class="running-job">
            <span class="min-w-0">
                <a class="row-link" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
                <span class="row-sub font-mono">{format::short_id(job.job_id.as_str())}</span>
            </span>
            <JobBadge status=job.status/>
            <span class="progress-cell">
                <Scale percent=job.percent label=t().job.progress_of.of(&job.config_name)/>
                <span class="progress-text">{job.percent.map(|percent| t().percent(percent))}</span>
            </span>
        </li>
    }
    .erased()
}
