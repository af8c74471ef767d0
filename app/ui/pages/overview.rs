//! The start page: the state of the fleet, and running and recent jobs.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::domain::access::Permission;
use crate::domain::time::Millis;
use crate::protocol::audit::AuditPage;
use crate::protocol::jobs::{JobCounts, JobView, JobsPage, JobsQuery};
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::status::{JobPhase, JobStatus};
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerCounts;
use crate::ui::backend::{BackendFuture, SharedBackend, use_backend};
use crate::ui::clock::use_clock;
use crate::ui::components::action::{MoreLink, TrainLink};
use crate::ui::components::alerts::Alerts;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::getting_started::GettingStarted;
use crate::ui::components::gpu_charts::{FleetChart, FleetGpus};
use crate::ui::components::job_table::{JobProgress, JobTable};
use crate::ui::components::latest_events::LatestEvents;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::status::JobBadge;
use crate::ui::components::time::Elapsed;
use crate::ui::components::worker_badge::WorkerBadge;
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::components::worker_table::describe_gpus;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::jobs_url;
use crate::ui::page_query::{FLEET, FLEET_GPUS};
use crate::ui::prefs::Prefs;

/// The data of the page, requested together.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Snapshot {
    /// The fleet, if the user may see workers.
    fleet: Option<OverviewView>,
    running: JobsPage,
    recent: JobsPage,
    /// The newest events, if the user may see the audit log.
    events: Option<AuditPage>,
}

/// Maximum number of running jobs to show.
const MAX_RUNNING: u32 = 12;
/// Number of recent jobs to request; those that are running are then left out.
const FETCH_LIMIT: u32 = 20;
/// Maximum number of other recent jobs to show.
const MAX_RECENT: usize = 8;
/// Maximum number of events to show.
const MAX_EVENTS: u32 = 10;

/// The sections that the user may see.
#[derive(Clone, Copy)]
struct VisibleSections {
    workers: bool,
    audit: bool,
}

fn fetch_overview(backend: &SharedBackend, sections: VisibleSections) -> BackendFuture<Snapshot> {
    let backend = backend.clone();
    let jobs = |phase, limit| JobsQuery { phase, limit: Some(limit), ..JobsQuery::default() };
    Box::pin(async move {
        Ok(Snapshot {
            fleet: if sections.workers { Some(backend.overview().await?) } else { None },
            running: backend.jobs(jobs(Some(JobPhase::Running), MAX_RUNNING)).await?,
            recent: backend.jobs(jobs(None, FETCH_LIMIT)).await?,
            events: if sections.audit { Some(backend.latest_events(MAX_EVENTS).await?) } else { None },
        })
    })
}

/// Returns the topics that change the page. A rejected request is an event, but changes no worker and no job.
const fn page_topics(sections: VisibleSections) -> &'static [Topic] {
    if sections.audit { &[Topic::AuditLog, Topic::Jobs, Topic::Workers] } else { &[Topic::Jobs, Topic::Workers] }
}

#[component]
pub(crate) fn OverviewPage() -> impl IntoView {
    let words = &t().overview;
    let backend = use_backend();
    let has_permission = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(permission));
    let sections = VisibleSections {
        workers: has_permission(Permission::AdminWorkers),
        audit: has_permission(Permission::AdminAudit),
    };
    let snapshot = Resource::new(|| (), {
        let backend = backend.clone();
        move |()| fetch_overview(&backend, sections)
    });
    let shown = move || {
        let backend = backend.clone();
        Suspend::new(async move {
            let snapshot: Result<Snapshot, Problem> = snapshot.await;
            match snapshot {
                Ok(first) => view! { <OverviewContent first=first sections=sections backend=backend/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn OverviewContent(first: Snapshot, sections: VisibleSections, backend: SharedBackend) -> impl IntoView {
    let sees_workers = sections.workers;
    let snapshot = live_signal(first, page_topics(sections), move || fetch_overview(&backend, sections));
    let workers = Memo::new(move |_| {
        snapshot.with(|snapshot| snapshot.fleet.as_ref().map_or(0, |fleet| worker_count(&fleet.workers)))
    });
    // The first steps are for users who may create workers.
    let is_new = Memo::new(move |_| {
        sees_workers && (workers.get() == 0 || snapshot.with(|snapshot| snapshot.recent.total == 0))
    });
    let has_worker = Memo::new(move |_| workers.get() > 0);
    let has_contact = Memo::new(move |_| {
        let has_heartbeat = |fleet: &OverviewView| fleet.fleet.iter().any(|worker| worker.last_heartbeat.is_some());
        snapshot.with(|snapshot| snapshot.fleet.as_ref().is_some_and(has_heartbeat))
    });
    let is_full = Memo::new(move |_| snapshot.with(|snapshot| snapshot.recent.disk_full));
    let gpus =
        Memo::new(move |_| snapshot.with(|snapshot| snapshot.fleet.as_ref().map(fleet_gpus).unwrap_or_default()));
    let audit_log = Memo::new(move |_| snapshot.with(|snapshot| snapshot.events.clone()));
    let alerts = move || {
        let fleet = Memo::new(move |_| snapshot.with(|snapshot| snapshot.fleet.clone()));
        has_worker.get().then(|| view! { <Alerts now=fleet/> })
    };
    // Events are below both columns: beside few jobs, they would leave a large gap.
    view! {
        {move || is_full.get().then(|| view! { <DiskFull/> })}
        {move || is_new.get().then(|| view! { <GettingStarted has_worker=has_worker.get() has_contact=has_contact.get()/> })}
        {move || (has_worker.get() || !is_new.get()).then(|| view! {
            <SummaryTiles snapshot=snapshot/>
            {alerts}
            {sees_workers.then(|| view! { <FleetChart gpus=gpus/> })}
            <div class="space-y-6">
                <div class=if !is_new.get() && sees_workers { "overview-grid" } else { "" }>
                    {(!is_new.get()).then(|| view! { <div class="min-w-0 space-y-6"><RunningJobs snapshot=snapshot/> <RecentJobs snapshot=snapshot/></div> })}
                    {sees_workers.then(|| view! { <FleetPanel snapshot=snapshot/> })}
                </div>
                {sections.audit.then(|| view! { <LatestEvents audit_log=audit_log/> })}
            </div>
        })}
    }
    .into_erased()
}

const fn fleet_gpus(fleet: &OverviewView) -> FleetGpus {
    let OverviewView { gpus, gpus_measured, .. } = fleet;
    FleetGpus { busy: gpus.busy, connected: gpus.connected(), measured: *gpus_measured }
}

const fn worker_count(counts: &WorkerCounts) -> u64 {
    connected_count(counts) + counts.offline
}

const fn connected_count(counts: &WorkerCounts) -> u64 {
    counts.connecting + counts.idle + counts.busy + counts.draining
}

#[component]
fn SummaryTiles(snapshot: RwSignal<Snapshot>) -> impl IntoView {
    let tiles = move || {
        snapshot.with(|snapshot| match &snapshot.fleet {
            Some(fleet) => view! { <FleetTiles fleet=fleet.clone()/> }.into_erased(),
            None => view! { <JobTiles counts=snapshot.recent.counts/> }.into_erased(),
        })
    };
    view! { <ul class="tiles">{tiles}</ul> }.into_erased()
}

/// The tiles for users who may see jobs only.
#[component]
fn JobTiles(counts: JobCounts) -> impl IntoView {
    let words = &t().overview;
    let completed_note = words.completed.of(counts.completed);
    view! {
        <StatLink href="/jobs?phase=running" name=words.running value=counts.running note=String::new()/>
        <StatLink href="/jobs?phase=waiting" name=words.waiting value=counts.waiting note=String::new()/>
        <StatLink href="/jobs?status=failed" name=words.failed value=counts.failed note=completed_note/>
    }
    .into_erased()
}

#[component]
fn FleetTiles(fleet: OverviewView) -> impl IntoView {
    let words = &t().overview;
    let clock = use_clock();
    let OverviewView { workers, gpus, jobs, server_time, .. } = fleet;
    let unavailable = (gpus.unavailable() > 0).then(|| words.gpus_unavailable.of(gpus.unavailable()));
    let gpu_note =
        [Some(words.gpus_busy.of(gpus.busy)), unavailable].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let oldest_job_link = jobs.oldest_waiting.map(|job| {
        let since = move || words.longest_wait.of(t().format_duration(clock.now() - job.submitted_at));
        view! { <a class="tile-note tile-link" href=format!("/jobs/{}", job.job_id)>{since}</a> }.into_erased()
    });
    // The link lists the same jobs as the tile counts.
    let ended_since = Some((server_time + Millis::from_secs(-86_400)).to_string());
    let failed = JobsQuery { status: Some(JobStatus::Failed), ended_since, ..JobsQuery::default() };
    let completed_note = words.completed.of(jobs.completed_in_24h);
    view! {
        <StatLink href=FLEET name=words.workers_online value=connected_count(&workers) note=words.workers_of.of(worker_count(&workers))/>
        <StatLink href=FLEET_GPUS name=words.gpus value=gpus.connected() note=gpu_note/>
        <StatLink href="/jobs?phase=running" name=words.running value=jobs.running note=String::new()/>
        <StatLink href="/jobs?phase=waiting" name=words.waiting value=jobs.waiting note=String::new() extra_link=oldest_job_link/>
        <StatLink href=jobs_url(&failed) name=words.failed_lately value=jobs.failed_in_24h note=completed_note/>
    }
    .into_erased()
}

#[component]
fn StatLink(
    #[prop(into)] href: String,
    name: &'static str,
    value: u64,
    note: String,
    /// A link of its own, in place of the note.
    #[prop(optional_no_strip)]
    extra_link: Option<AnyView>,
) -> impl IntoView {
    view! {
        <li>
            <a class="tile" href=href>
                <span class="tile-name">{name}</span>
                <span class="tile-value">{t().format_integer(value)}</span>
                <span class="tile-note">{note}</span>
            </a>
            {extra_link}
        </li>
    }
    .into_erased()
}

#[component]
fn RunningJobs(snapshot: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let running = Memo::new(move |_| snapshot.with(|snapshot| snapshot.running.jobs.clone()));
    let waiting = Memo::new(move |_| snapshot.with(|snapshot| snapshot.recent.counts.waiting));
    // If jobs are waiting, the next one may have to wait for the same reason.
    let hint = move || match waiting.get() {
        0 => words.nothing_running_hint.to_owned(),
        count => words.nothing_running_waiting.of(count),
    };
    view! {
        <section class="panel" aria-labelledby="running">
            <h2 id="running" class="panel-head">{words.now_running}</h2>
            {move || {
                if running.with(Vec::is_empty) {
                    view! {
                        <EmptyPanel glyph=Glyph::Train title=words.nothing_running text=hint()>
                            <TrainLink/>
                        </EmptyPanel>
                    }
                    .into_erased()
                } else {
                    view! { <ul class="rows">{running.get().into_iter().map(|job| view! { <RunningJob job=job/> }).collect_view()}</ul> }.into_erased()
                }
            }}
        </section>
    }
    .into_erased()
}

#[component]
fn RunningJob(job: JobView) -> impl IntoView {
    view! {
        <li class="running-job">
            <span class="min-w-0">
                <a class="row-link" href=format!("/jobs/{}", job.job_id)>{job.config_name.clone()}</a>
                <span class="row-sub pt-1"><WorkerLink job=job.clone()/>{job.started_at.map(|from| view! { " · "<Elapsed from=from/> })}</span>
            </span>
            <JobBadge status=job.status/>
            <JobProgress job=job/>
        </li>
    }
    .into_erased()
}

#[component]
fn RecentJobs(snapshot: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let recent = Signal::derive(move || {
        let recent_jobs = |snapshot: &Snapshot| {
            let rest = snapshot.recent.jobs.iter().filter(|job| !job.status.is_in_phase(JobPhase::Running));
            rest.take(MAX_RECENT).cloned().collect::<Vec<_>>()
        };
        snapshot.with(recent_jobs)
    });
    let total = Memo::new(move |_| snapshot.with(|snapshot| snapshot.recent.total));
    let none = Memo::new(move |_| recent.with(Vec::is_empty));
    let body = move || match (none.get(), total.get()) {
        (true, 0) => {
            let words = &t().jobs;
            view! { <EmptyPanel glyph=Glyph::Jobs title=words.none_yet text=words.none_yet_hint/> }.into_erased()
        }
        // All jobs are running, and are listed above.
        (true, _) => ().into_erased(),
        (false, _) => view! { <JobTable jobs=recent/> }.into_erased(),
    };
    view! {
        <section class="panel" aria-labelledby="recent">
            <h2 id="recent" class="panel-head">{words.recent}<MoreLink href="/jobs" label=words.all_jobs/></h2>
            {body}
        </section>
    }
    .into_erased()
}

#[component]
fn FleetPanel(snapshot: RwSignal<Snapshot>) -> impl IntoView {
    let words = t();
    let rows = move || {
        snapshot
            .with(|snapshot| snapshot.fleet.as_ref().map(|snapshot| snapshot.fleet.clone()))
            .unwrap_or_default()
            .into_iter()
            .map(|worker| {
                view! {
                    <li class="fleet-row">
                        <span class="min-w-0">
                            <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
                            <span class="row-sub">{describe_gpus(&words.workers, &worker)}</span>
                        </span>
                        <WorkerBadge worker=worker/>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <section class="panel self-start" aria-labelledby="fleet">
            <h2 id="fleet" class="panel-head">{words.overview.fleet}<MoreLink href=FLEET label=words.overview.all_workers/></h2>
            <ul class="rows">{rows}</ul>
        </section>
    }
    .into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn tile_numbers_have_digit_groups() {
        let counts = JobCounts { waiting: 9_998, failed: 10_000, completed: 1_234_567, ..JobCounts::default() };
        let html = Owner::new().with(|| view! { <JobTiles counts=counts/> }.to_html().replace("<!>", ""));
        for number in [">9,998<", ">10,000<", "1,234,567"] {
            assert!(html.contains(number), "{number}: {html}");
        }
    }
}
