//! One worker; right after it was made, its token and the way to connect it.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::not_found::NotFoundPage;
use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::protocol::status::WorkerStatus;
use crate::protocol::topic::Topic;
use crate::protocol::workers::{HeldJob, WorkerView};
use crate::ui::components::action::ButtonLink;
use crate::ui::components::copy::IdText;
use crate::ui::components::drain::DrainSwitch;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::gpu_charts::WorkerCharts;
use crate::ui::components::gpu_table::GpuTable;
use crate::ui::components::icon::Glyph;
use crate::ui::components::labels::LabelChips;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::scale::Scale;
use crate::ui::components::status::{JobBadge, WorkerBadge, type_word};
use crate::ui::components::time::Moment;
use crate::ui::components::worker_connect::{FirstContact, TokenOnce};
use crate::ui::components::worker_table::{Seen, gpus};
use crate::ui::components::worker_token::{TokenAlarm, TokenPanel};
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, Way};
use crate::ui::format;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

/// A worker's page.
#[component]
pub(crate) fn WorkerPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| WorkerId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <Worker id=id/> }.erased(),
        None => view! { <NotFoundPage/> }.erased(),
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
                Err(problem) => view! {
                    <PageHead title=t().workers.worker above=("/admin/workers", t().workers.title)/>
                    <Failure problem=problem/>
                }
                .erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Shown(first: WorkerView, id: WorkerId, port: SharedPort) -> impl IntoView {
    let words = t();
    let created = created_now(&id);
    let token_shown = created.is_some();
    let is_new = token_shown || first.last_heartbeat.is_none();
    let name = first.name.clone();
    let worker = refreshed(first, &[Topic::Workers, Topic::Worker(id.clone())], {
        let id = id.clone();
        move || port.worker(id.clone())
    });
    let unverified = Memo::new(move |_| worker.with(|worker| worker.tls_verify == Some(false)));
    let unfit = Memo::new(move |_| {
        worker.with(|worker| worker.unfit.clone().filter(|_| worker.status != WorkerStatus::Offline))
    });
    let reads = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminAudit));
    let trail = reads.then(|| {
        let href = format!("/admin/audit?target={id}");
        view! { <a class="quiet-link" href=href rel="external">{words.nav.audit}</a> }
    });
    let badge = move || view! { <WorkerBadge worker=worker.get()/> };
    view! {
        <PageHead title=name above=("/admin/workers", words.workers.title)>
            <Actions worker=worker/>
        </PageHead>
        <p class="byline">
            {badge}
            <IdText id=id.to_string()/>
            {trail}
        </p>
        {move || unverified.get().then(|| view! { <p class="mb-4 max-w-prose text-muted">{words.worker.unverified_hint}</p> })}
        {move || unfit.get().map(|why| view! {
            <p class="mb-4 max-w-prose text-muted wrap-anywhere">{words.worker.unfit_because.of(&why)}</p>
        })}
        <TokenAlarm worker=worker/>
        <div class="space-y-6">
            {is_new.then(|| view! { <FirstContact worker=worker token_shown=token_shown/> })}
            {created.map(|(token, ways)| view! { <TokenOnce token=token ways=ways/> })}
            <GpuTable worker=worker/>
            <WorkerCharts id=id.clone()/>
            <div class="worker-grid">
                <Held worker=worker/>
                <div class="space-y-6">
                    <Facts worker=worker/>
                    <TokenPanel worker=worker/>
                </div>
            </div>
        </div>
    }
    .erased()
}

/// The answer to the creation of this very worker, if it is this page's flash.
fn created_now(id: &WorkerId) -> Option<(String, Vec<Way>)> {
    match use_context::<CurrentFlash>()?.0.get_untracked()? {
        Flash::Created { worker, ways } if worker.worker_id == *id => Some((worker.token, ways)),
        _ => None,
    }
}

#[component]
fn Actions(worker: RwSignal<WorkerView>) -> impl IntoView {
    let id = worker.with_untracked(|worker| worker.id.clone());
    view! {
        <DrainSwitch worker=worker/>
        <ButtonLink href=format!("/admin/workers/{id}/delete") label=t().worker.delete glyph=Glyph::Trash class="btn btn-sm btn-ghost text-bad"/>
    }
    .erased()
}

#[component]
fn Held(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().worker;
    let jobs = Memo::new(move |_| worker.with(|worker| worker.jobs.clone()));
    view! {
        <section class="panel" aria-labelledby="held">
            <h2 id="held" class="panel-head">{words.jobs}</h2>
            {move || {
                if jobs.with(Vec::is_empty) {
                    view! { <Empty glyph=Glyph::Gpu title=words.no_jobs text=words.no_jobs_hint/> }.erased()
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

#[component]
fn Facts(worker: RwSignal<WorkerView>) -> impl IntoView {
    view! {
        <section class="panel self-start" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{t().worker.facts}</h2>
            <dl class="facts">{move || facts(worker.get())}</dl>
        </section>
    }
    .erased()
}

fn facts(worker: WorkerView) -> impl IntoView {
    let words = t();
    let of = |name, value: Option<String>| value.map(|value| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
    let memory = worker.gpu_vram_gb.map(|gb| format!("{gb:.0} GB"));
    let driver = worker.gpu_info.as_ref().and_then(|info| info.driver.clone());
    let runtime = worker.gpu_info.as_ref().and_then(|info| info.runtime.clone());
    view! {
        <div><dt>{words.worker.seen}</dt><dd><Seen worker=worker.clone()/></dd></div>
        {of(words.worker.seen_from, worker.last_used_from.clone())}
        <div><dt>{words.worker.gpus}</dt><dd>{gpus(&words.workers, &worker)}</dd></div>
        {of(words.worker.memory_each, memory)}
        {of(words.worker.accelerator, worker.accelerator_type.clone())}
        {of(words.worker.driver, driver)}
        {of(words.worker.runtime, runtime)}
        <div><dt>{words.worker.kind}</dt><dd>{type_word(&words.status, worker.worker_type)}</dd></div>
        <div><dt>{words.worker.labels}</dt><dd><LabelChips labels=worker.labels.clone() none=words.worker.no_labels/></dd></div>
        {of(words.worker.host, worker.hostname.clone())}
        {of(words.worker.agent, worker.agent_version.clone())}
        <div><dt>{words.worker.status_since}</dt><dd><Moment at=worker.status_since/></dd></div>
        <div><dt>{words.worker.created}</dt><dd><Moment at=worker.created_at/></dd></div>
    }
    .erased()
}
