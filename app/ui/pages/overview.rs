//! How it stands: the fleet, what runs, what ran.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::jobs::jobs_address;
use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::domain::time::Millis;
use crate::protocol::audit::AuditPage;
use crate::protocol::overview::OverviewView;
use crate::protocol::problem::Problem;
use crate::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery};
use crate::protocol::status::{JobStatus, Phase};
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerCounts;
use crate::ui::clock::use_clock;
use crate::ui::components::action::{MoreLink, TrainLink};
use crate::ui::components::attention::Attention;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::gpu_charts::FleetChart;
use crate::ui::components::icon::Glyph;
use crate::ui::components::job_table::{JobProgress, JobTable};
use crate::ui::components::latest_events::LatestEvents;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::start_steps::StartSteps;
use crate::ui::components::status::{JobBadge, WorkerBadge};
use crate::ui::components::time::Elapsed;
use crate::ui::components::worker_link::WorkerLink;
use crate::ui::components::worker_table::gpus;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::{Answer, SharedPort};
use crate::ui::prefs::Prefs;

/// Everything on the page, asked for together.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Snapshot {
    /// The fleet, if the reader may see workers.
    fleet: Option<OverviewView>,
    running: JobsPage,
    recent: JobsPage,
    /// The newest events, if the reader may see the trail.
    events: Option<AuditPage>,
}

/// So many jobs are shown that run.
const RUNNING: u32 = 12;
/// So many are asked for, of which some run.
const NEWEST: u32 = 20;
/// So many are shown of the others.
const RECENT: usize = 8;
/// So many events are told.
const EVENTS: u32 = 10;

/// What of the page is for this reader.
#[derive(Clone, Copy)]
struct Sees {
    workers: bool,
    trail: bool,
}

fn ask(port: &SharedPort, sees: Sees) -> Answer<Snapshot> {
    let port = port.clone();
    let jobs = |phase, limit| JobsQuery { phase, limit: Some(limit), ..JobsQuery::default() };
    Box::pin(async move {
        Ok(Snapshot {
            fleet: if sees.workers { Some(port.overview().await?) } else { None },
            running: port.jobs(jobs(Some(Phase::Running), RUNNING)).await?,
            recent: port.jobs(jobs(None, NEWEST)).await?,
            events: if sees.trail { Some(port.latest_events(EVENTS).await?) } else { None },
        })
    })
}

/// The first page.
#[component]
pub(crate) fn OverviewPage() -> impl IntoView {
    let words = &t().overview;
    let port = use_port();
    let may = |permission| use_context::<Prefs>().is_some_and(|prefs| prefs.may(permission));
    let sees = Sees { workers: may(Permission::AdminWorkers), trail: may(Permission::AdminAudit) };
    let snapshot = Resource::new(|| (), {
        let port = port.clone();
        move |()| ask(&port, sees)
    });
    let shown = move || {
        let port = port.clone();
        Suspend::new(async move {
            let snapshot: Result<Snapshot, Problem> = snapshot.await;
            match snapshot {
                Ok(first) => view! { <Shown first=first sees=sees port=port/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn Shown(first: Snapshot, sees: Sees, port: SharedPort) -> impl IntoView {
    let sees_workers = sees.workers;
    let now = refreshed(first, &[Topic::Workers, Topic::Jobs], move || ask(&port, sees));
    let workers = Memo::new(move |_| now.with(|now| now.fleet.as_ref().map_or(0, |fleet| all(&fleet.workers))));
    // The first steps are those of whoever can make a worker.
    let is_new = Memo::new(move |_| sees_workers && (workers.get() == 0 || now.with(|now| now.recent.total == 0)));
    let has_worker = Memo::new(move |_| workers.get() > 0);
    let has_contact = Memo::new(move |_| {
        let here = |fleet: &OverviewView| fleet.fleet.iter().any(|worker| worker.last_heartbeat.is_some());
        now.with(|now| now.fleet.as_ref().is_some_and(here))
    });
    let is_full = Memo::new(move |_| now.with(|now| now.recent.disk_full));
    let trail = Memo::new(move |_| now.with(|now| now.events.clone()));
    let attention = move || {
        let fleet = Memo::new(move |_| now.with(|now| now.fleet.clone()));
        has_worker.get().then(|| view! { <Attention now=fleet/> })
    };
    view! {
        {move || is_full.get().then(|| view! { <DiskFull/> })}
        {move || is_new.get().then(|| view! { <StartSteps has_worker=has_worker.get() has_contact=has_contact.get()/> })}
        {move || (has_worker.get() || !is_new.get()).then(|| view! {
            <Tiles now=now/>
            {attention}
            {sees_workers.then(|| view! { <FleetChart/> })}
            <div class=if sees_workers || sees.trail { "overview-grid" } else { "" }>
                <div class="min-w-0 space-y-6">
                    {(!is_new.get()).then(|| view! { <RunningNow now=now/> <Recent now=now/> })}
                </div>
                <div class="space-y-6">
                    {sees_workers.then(|| view! { <Fleet now=now/> })}
                    {sees.trail.then(|| view! { <LatestEvents trail=trail/> })}
                </div>
            </div>
        })}
    }
    .erased()
}

const fn all(counts: &WorkerCounts) -> u64 {
    here(counts) + counts.offline
}

const fn here(counts: &WorkerCounts) -> u64 {
    counts.connecting + counts.idle + counts.busy + counts.draining
}

#[component]
fn Tiles(now: RwSignal<Snapshot>) -> impl IntoView {
    let tiles = move || {
        now.with(|now| match &now.fleet {
            Some(fleet) => view! { <FleetTiles fleet=fleet.clone()/> }.erased(),
            None => view! { <JobTiles counts=now.recent.counts/> }.erased(),
        })
    };
    view! { <ul class="tiles">{tiles}</ul> }.erased()
}

/// What a reader is told who sees jobs only.
#[component]
fn JobTiles(counts: JobCounts) -> impl IntoView {
    let words = &t().overview;
    let done = words.ended_well.of(counts.completed);
    view! {
        <Tile href="/jobs?phase=running" name=words.running value=counts.running note=String::new()/>
        <Tile href="/jobs?phase=waiting" name=words.waiting value=counts.waiting note=String::new()/>
        <Tile href="/jobs?status=failed" name=words.failed value=counts.failed note=done/>
    }
    .erased()
}

#[component]
fn FleetTiles(fleet: OverviewView) -> impl IntoView {
    let words = &t().overview;
    let clock = use_clock();
    let OverviewView { workers, gpus, jobs, server_time, .. } = fleet;
    let withheld = (gpus.withheld() > 0).then(|| words.gpus_withheld.of(gpus.withheld()));
    let of_gpus = [Some(words.gpus_busy.of(gpus.busy)), withheld].into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let longest = jobs.oldest_waiting.map(|job| {
        let since = move || words.longest_wait.of(t().span(clock.now() - job.submitted_at));
        view! { <a class="tile-note tile-way" href=format!("/jobs/{}", job.job_id)>{since}</a> }.erased()
    });
    // Those that the number counts.
    let lately = Some((server_time + Millis::seconds(-86_400)).to_string());
    let failed = JobsQuery { status: Some(JobStatus::Failed), ended_since: lately, ..JobsQuery::default() };
    let done = words.ended_well.of(jobs.completed_in_24h);
    view! {
        <Tile href="/admin/workers" name=words.workers_online value=here(&workers) note=words.workers_of.of(all(&workers))/>
        <Tile href="/gpus" name=words.gpus value=gpus.connected() note=of_gpus/>
        <Tile href="/jobs?phase=running" name=words.running value=jobs.running note=String::new()/>
        <Tile href="/jobs?phase=waiting" name=words.waiting value=jobs.waiting note=String::new() way=longest/>
        <Tile href=jobs_address(&failed) name=words.failed_lately value=jobs.failed_in_24h note=done/>
    }
    .erased()
}

#[component]
fn Tile(
    #[prop(into)] href: String,
    name: &'static str,
    value: u64,
    note: String,
    /// A way of its own, where the note would be.
    #[prop(optional_no_strip)]
    way: Option<AnyView>,
) -> impl IntoView {
    view! {
        <li>
            <a class="tile" href=href>
                <span class="tile-name">{name}</span>
                <span class="tile-value">{t().whole(value)}</span>
                <span class="tile-note">{note}</span>
            </a>
            {way}
        </li>
    }
    .erased()
}

#[component]
fn RunningNow(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let running = Memo::new(move |_| now.with(|now| now.running.jobs.clone()));
    let waiting = Memo::new(move |_| now.with(|now| now.recent.counts.waiting));
    // What waits does so for a reason, which the next job may have too.
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
                        <Empty glyph=Glyph::Train title=words.nothing_running text=hint()>
                            <TrainLink/>
                        </Empty>
                    }
                    .erased()
                } else {
                    view! { <ul class="rows">{running.get().into_iter().map(|job| view! { <RunningJob job=job/> }).collect_view()}</ul> }.erased()
                }
            }}
        </section>
    }
    .erased()
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
    .erased()
}

#[component]
fn Recent(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let recent = Signal::derive(move || {
        let others = |now: &Snapshot| {
            let rest = now.recent.jobs.iter().filter(|job| !job.status.is_in(Phase::Running));
            rest.take(RECENT).cloned().collect::<Vec<_>>()
        };
        now.with(others)
    });
    let total = Memo::new(move |_| now.with(|now| now.recent.total));
    let none = Memo::new(move |_| recent.with(Vec::is_empty));
    let body = move || match (none.get(), total.get()) {
        (true, 0) => {
            let words = &t().jobs;
            view! { <Empty glyph=Glyph::Jobs title=words.none_yet text=words.none_yet_hint/> }.erased()
        }
        // All of them run, and are told above.
        (true, _) => ().erased(),
        (false, _) => view! { <JobTable jobs=recent/> }.erased(),
    };
    view! {
        <section class="panel" aria-labelledby="recent">
            <h2 id="recent" class="panel-head">{words.recent}<MoreLink href="/jobs" label=words.all_jobs/></h2>
            {body}
        </section>
    }
    .erased()
}

#[component]
fn Fleet(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = t();
    let rows = move || {
        now.with(|now| now.fleet.as_ref().map(|now| now.fleet.clone()))
            .unwrap_or_default()
            .into_iter()
            .map(|worker| {
                view! {
                    <li class="fleet-row">
                        <span class="min-w-0">
                            <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
                            <span class="row-sub">{gpus(&words.workers, &worker)}</span>
                        </span>
                        <WorkerBadge worker=worker/>
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <section class="panel self-start" aria-labelledby="fleet">
            <h2 id="fleet" class="panel-head">{words.overview.fleet}<MoreLink href="/admin/workers" label=words.overview.all_workers/></h2>
            <ul class="rows">{rows}</ul>
        </section>
    }
    .erased()
}
