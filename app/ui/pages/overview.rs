//! How it stands: the fleet, what runs, what ran.

use leptos::prelude::*;

use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::protocol::problem::Problem;
use crate::protocol::queue::{JobView, JobsPage, JobsQuery};
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkersPage, WorkersQuery};
use crate::ui::components::action::{MoreLink, TrainLink};
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::gpu_charts::FleetChart;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::job_table::{JobProgress, JobTable};
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

/// How many workers it shows.
const FLEET_ROWS: u32 = 12;

/// Everything on the page, asked for together: workers, if the reader may see them, and jobs.
type Snapshot = (Option<WorkersPage>, JobsPage);

fn ask(port: &SharedPort, sees_workers: bool) -> Answer<Snapshot> {
    let port = port.clone();
    Box::pin(async move {
        let some = WorkersQuery { limit: Some(FLEET_ROWS), ..WorkersQuery::default() };
        let workers = if sees_workers { Some(port.workers(some).await?) } else { None };
        let jobs = port.jobs(JobsQuery { limit: Some(30), ..JobsQuery::default() }).await?;
        Ok((workers, jobs))
    })
}

/// The first page.
#[component]
pub(crate) fn OverviewPage() -> impl IntoView {
    let words = &t().overview;
    let port = use_port();
    let sees_workers = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminWorkers));
    let snapshot = Resource::new(|| (), {
        let port = port.clone();
        move |()| ask(&port, sees_workers)
    });
    let shown = move || {
        let port = port.clone();
        Suspend::new(async move {
            let snapshot: Result<Snapshot, Problem> = snapshot.await;
            match snapshot {
                Ok(first) => view! { <Shown first=first port=port/> }.erased(),
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
fn Shown(first: Snapshot, port: SharedPort) -> impl IntoView {
    let sees_workers = first.0.is_some();
    let now = refreshed(first, &[Topic::Workers, Topic::Jobs], move || ask(&port, sees_workers));
    let of_workers =
        move |question: fn(&WorkersPage) -> bool| now.with(|(workers, _)| workers.as_ref().is_some_and(question));
    // The first steps are those of whoever can make a worker.
    let is_new = Memo::new(move |_| {
        let unused = now.with(|(_, jobs)| jobs.total == 0 && jobs.jobs.is_empty());
        sees_workers && (unused || of_workers(|workers| workers.total == 0))
    });
    let has_worker = Memo::new(move |_| of_workers(|workers| workers.total > 0));
    let has_contact = Memo::new(move |_| of_workers(|workers| workers.fleet.contacted > 0));
    let is_full = Memo::new(move |_| now.with(|(_, jobs)| jobs.disk_full));
    view! {
        {move || is_full.get().then(|| view! { <DiskFull/> })}
        {move || is_new.get().then(|| view! { <StartSteps has_worker=has_worker.get() has_contact=has_contact.get()/> })}
        {move || (has_worker.get() || !is_new.get()).then(|| view! {
            <Tiles now=now/>
            {sees_workers.then(|| view! { <FleetChart/> })}
            <div class=if sees_workers { "overview-grid" } else { "" }>
                <div class="min-w-0 space-y-6">
                    {(!is_new.get()).then(|| view! { <RunningNow now=now/> <Recent now=now/> })}
                </div>
                {sees_workers.then(|| view! { <Fleet now=now/> })}
            </div>
        })}
    }
    .erased()
}

#[component]
fn DiskFull() -> impl IntoView {
    view! {
        <div class="notice notice-warn" role="status">
            <Icon glyph=Glyph::Warning/>
            <p class="grow">{t().overview.disk_full}</p>
        </div>
    }
    .erased()
}

#[component]
fn Tiles(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let tiles = move || {
        now.with(|(workers, jobs)| {
            let done = words.ended_well.of(jobs.counts.completed);
            view! {
                {workers.as_ref().map(|workers| view! { <WorkerTiles workers=workers.clone()/> })}
                <Tile href="/jobs?phase=active" name=words.running value=jobs.counts.running note=String::new()/>
                <Tile href="/jobs?status=queued" name=words.waiting value=jobs.counts.waiting note=String::new()/>
                <Tile href="/jobs?status=failed" name=words.failed value=jobs.counts.failed note=done/>
            }
        })
    };
    view! { <ul class="tiles">{tiles}</ul> }.erased()
}

#[component]
fn WorkerTiles(workers: WorkersPage) -> impl IntoView {
    let (words, counts) = (&t().overview, workers.counts);
    let online = counts.connecting + counts.idle + counts.busy + counts.draining;
    let all = counts.connecting + counts.idle + counts.busy + counts.draining + counts.offline;
    view! {
        <Tile href="/admin/workers" name=words.workers_online value=online note=words.workers_of.of(all)/>
        <Tile href="/admin/workers" name=words.gpus value=workers.fleet.gpus note=words.gpus_busy.of(workers.fleet.gpus_held)/>
    }
    .erased()
}

#[component]
fn Tile(href: &'static str, name: &'static str, value: u64, note: String) -> impl IntoView {
    view! {
        <li>
            <a class="tile" href=href>
                <span class="tile-name">{name}</span>
                <span class="tile-value">{value}</span>
                <span class="tile-note">{note}</span>
            </a>
        </li>
    }
    .erased()
}

/// Whether the job stands in the upper list, and so not in the lower one.
fn is_running(job: &JobView) -> bool {
    job.started_at.is_some() && !job.status.is_terminal()
}

#[component]
fn RunningNow(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = &t().overview;
    let running = Memo::new(move |_| {
        now.with(|(_, jobs)| jobs.jobs.iter().filter(|job| is_running(job)).cloned().collect::<Vec<_>>())
    });
    view! {
        <section class="panel" aria-labelledby="running">
            <h2 id="running" class="panel-head">{words.now_running}</h2>
            {move || {
                if running.with(Vec::is_empty) {
                    view! {
                        <Empty glyph=Glyph::Train title=words.nothing_running text=words.nothing_running_hint>
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
        now.with(|(_, jobs)| jobs.jobs.iter().filter(|job| !is_running(job)).take(8).cloned().collect::<Vec<_>>())
    });
    view! {
        <section class="panel" aria-labelledby="recent">
            <h2 id="recent" class="panel-head">{words.recent}<MoreLink href="/jobs" label=words.all_jobs/></h2>
            <JobTable jobs=recent/>
        </section>
    }
    .erased()
}

#[component]
fn Fleet(now: RwSignal<Snapshot>) -> impl IntoView {
    let words = t();
    let rows = move || {
        now.with(|(workers, _)| workers.as_ref().map(|page| page.workers.clone()))
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
