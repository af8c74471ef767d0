//! One job: how it stands, its curve, its output, its files. Each panel asks for its own.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::domain::ids::{Attempt, JobId};
use crate::protocol::queue::JobView;
use crate::protocol::topic::Topic;
use crate::ui::components::action::{ConfirmedAction, Deed};
use crate::ui::components::artifacts::Artifacts;
use crate::ui::components::attempts::Attempts;
use crate::ui::components::copy::IdText;
use crate::ui::components::failure::Failure;
use crate::ui::components::icon::Glyph;
use crate::ui::components::job_head::JobHead;
use crate::ui::components::job_table::WorkerLink;
use crate::ui::components::labels::LabelChips;
use crate::ui::components::log_view::{LogView, TAIL_BYTES};
use crate::ui::components::loss_chart::LossChart;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::samples::Samples;
use crate::ui::components::status::{JobBadge, target_word};
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

use super::not_found::NotFoundPage;

/// A job's page.
#[component]
pub(crate) fn JobPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <Job id=id/> }.erased(),
        None => view! { <NotFoundPage/> }.erased(),
    }
}

#[component]
fn Job(id: JobId) -> impl IntoView {
    let port = use_port();
    let detail = Resource::new(|| (), {
        let (port, id) = (port.clone(), id.clone());
        move |()| port.job(id.clone())
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match detail.await {
                Ok(first) => view! { <Shown first=first id=id port=port/> }.erased(),
                Err(problem) => view! {
                    <PageHead title=t().jobs.job above=("/jobs", t().jobs.title)/>
                    <Failure problem=problem/>
                }
                .erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Shown(first: JobView, id: JobId, port: SharedPort) -> impl IntoView {
    let words = t();
    let name = first.config_name.clone();
    let detail = refreshed(first, &[Topic::Job(id.clone())], {
        let (port, id) = (port.clone(), id.clone());
        move || port.job(id.clone())
    });
    let status = Memo::new(move |_| detail.with(|detail| detail.status));
    let ended = Signal::derive(move || status.get().is_terminal());
    let newest = Memo::new(move |_| detail.with(|detail| detail.attempt));
    let attempts = Signal::derive(move || detail.with(|detail| detail.attempts.clone().unwrap_or_default()));
    // Whose job it is says the server; who may cancel none is not asked.
    let cancels = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::JobCancelOwn));
    let cancel =
        Deed { form: format!("/ui/jobs/{id}/cancel"), method: "POST", rest: format!("/api/queue/{id}/cancel") };
    view! {
        <PageHead title=name above=("/jobs", words.jobs.title)>
            {move || (cancels && !ended.get()).then(|| view! {
                <ConfirmedAction
                    deed=cancel.clone()
                    label=words.job.cancel
                    text=words.job.cancel_text
                    confirm=words.job.cancel_confirm
                    keep=words.job.keep
                    glyph=Glyph::StopCircle
                />
            })}
        </PageHead>
        <Byline detail=detail/>
        <div class="space-y-6">
            <JobHead detail=detail/>
            <div class="job-grid">
                <Chart id=id.clone() port=port.clone()/>
                <div class="min-w-0 space-y-6">
                    <Facts detail=detail/>
                    <Attempts job=id.clone() attempts=attempts/>
                </div>
            </div>
            <Output id=id.clone() port=port.clone() newest=newest ended=ended/>
            <Files id=id port=port/>
        </div>
    }
    .erased()
}

/// Status, who submitted it and when, and its id.
#[component]
fn Byline(detail: RwSignal<JobView>) -> impl IntoView {
    let words = &t().job;
    let status = Memo::new(move |_| detail.with(|detail| detail.status));
    let JobView { job_id, submitted_at, submitted_by, .. } = detail.get_untracked();
    view! {
        <p class="byline">
            {move || view! { <JobBadge status=status.get()/> }}
            <span><Moment at=submitted_at/>" "{words.submitted_by.of(&submitted_by)}</span>
            <IdText id=job_id.to_string()/>
        </p>
    }
    .erased()
}

#[component]
fn Facts(detail: RwSignal<JobView>) -> impl IntoView {
    let words = t();
    view! {
        <section class="panel" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{words.job.facts}</h2>
            <dl class="facts">{move || detail.with(facts)}</dl>
        </section>
    }
    .erased()
}

fn facts(job: &JobView) -> impl IntoView + use<> {
    let words = t();
    let gpus = job.gpu_count.map_or_else(|| words.job.one_slot.to_owned(), |count| count.to_string());
    let used = words.common.of.with(&[&job.attempt, &job.max_attempts]);
    view! {
        <div><dt>{words.job.worker}</dt><dd><WorkerLink job=job.clone()/></dd></div>
        <div><dt>{words.job.configuration}</dt><dd>{job.config_name.clone()}<span class="text-muted">", "{words.job.revision.of(job.config_revision)}</span></dd></div>
        <div><dt>{words.job.target}</dt><dd>{target_word(&words.status, job.target)}</dd></div>
        <div><dt>{words.job.gpus}</dt><dd>{gpus}</dd></div>
        <div><dt>{words.job.labels}</dt><dd><LabelChips labels=job.worker_labels.clone() none=words.job.any_label/></dd></div>
        <div><dt>{words.job.retries}</dt><dd>{used}</dd></div>
        {job.started_at.map(|at| view! { <div><dt>{words.job.started}</dt><dd><Moment at=at/></dd></div> })}
        {job.ended_at.map(|at| view! { <div><dt>{words.job.ended}</dt><dd><Moment at=at/></dd></div> })}
    }
    .erased()
}

#[component]
fn Chart(id: JobId, port: SharedPort) -> impl IntoView {
    let series = Resource::new(|| (), {
        let (port, id) = (port.clone(), id.clone());
        move |()| port.job_progress(id.clone())
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match series.await {
                Ok(first) => {
                    let topic = Topic::Job(id.clone());
                    let series = refreshed(first, &[topic], move || port.job_progress(id.clone()));
                    view! { <LossChart series=series/> }.erased()
                }
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Output(id: JobId, port: SharedPort, newest: Memo<Attempt>, ended: Signal<bool>) -> impl IntoView {
    let words = t();
    let chosen = use_query_map();
    let attempt = Memo::new(move |_| {
        let chosen = chosen.with(|query| query.get("attempt")).and_then(|number| number.parse().ok()).map(Attempt);
        chosen.unwrap_or_else(|| newest.get())
    });
    let chunk = Resource::new(move || attempt.get(), {
        let id = id.clone();
        move |attempt: Attempt| {
            let asked = (attempt.0 > 0).then(|| port.job_log(id.clone(), attempt, None, TAIL_BYTES));
            async move {
                match asked {
                    Some(answer) => answer.await.map(Some),
                    None => Ok(None),
                }
            }
        }
    });
    let shown = move || {
        let id = id.clone();
        Suspend::new(async move {
            match chunk.await {
                Ok(Some(first)) => view! { <LogView job=id first=first ended=ended/> }.erased(),
                Ok(None) => view! {
                    <section class="panel" aria-labelledby="log">
                        <h2 id="log" class="panel-head">{words.log.title}</h2>
                        <p class="panel-empty">{words.log.before_first}</p>
                    </section>
                }
                .erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.erased()
}

#[component]
fn Files(id: JobId, port: SharedPort) -> impl IntoView {
    let page = Resource::new(|| (), {
        let (port, id) = (port.clone(), id.clone());
        move |()| port.job_artifacts(id.clone())
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match page.await {
                Ok(first) => {
                    let topic = Topic::Job(id.clone());
                    let page = refreshed(first, &[topic], move || port.job_artifacts(id.clone()));
                    let artifacts = Signal::derive(move || page.with(|page| page.artifacts.clone()));
                    view! { <Samples artifacts=artifacts/> <Artifacts artifacts=artifacts/> }.erased()
                }
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}
