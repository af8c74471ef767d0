//! The list of jobs: what waits, what runs, what ran.

mod query;
mod row;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

pub(crate) use self::query::jobs_address;
use self::query::{is_filtered, query_of};
use self::row::{Rows, offers};
use super::{Skeleton, field_moment, use_port};
use crate::domain::access::Permission;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;
use crate::protocol::queue::{JobCounts, JobsPage, JobsQuery};
use crate::protocol::status::{JobStatus, Phase};
use crate::protocol::topic::Topic;
use crate::ui::components::action::TrainLink;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::pager::Pager;
use crate::ui::components::picking::Picking;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

/// All jobs that the reader may see, newest first; those that wait in the order of their turns.
#[component]
pub(crate) fn JobsPage() -> impl IntoView {
    let words = &t().jobs;
    let port = use_port();
    let params = use_query_map();
    let query = Memo::new(move |_| params.with(query_of));
    let page = Resource::new(move || query.get(), {
        let port = port.clone();
        move |query| port.jobs(query)
    });
    let shown = move || {
        let port = port.clone();
        let query = query.get();
        Suspend::new(async move {
            match page.await {
                Ok(first) => view! { <Shown first=first query=query port=port/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title>
            <TrainLink/>
        </PageHead>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .erased()
}

#[component]
fn Shown(first: JobsPage, query: JobsQuery, port: SharedPort) -> impl IntoView {
    let words = &t().jobs;
    let page = refreshed(first, &[Topic::Jobs], {
        let query = query.clone();
        move || port.jobs(query.clone())
    });
    let filtered = is_filtered(&query);
    let caption = if query.phase == Some(Phase::Waiting) { words.caption_waiting } else { words.caption };
    let is_empty = Memo::new(move |_| page.with(|page| page.jobs.is_empty()));
    let back = jobs_address(&query);
    let chips = view! { <Chips query=query.clone() page=page/> };
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=filters(&query, page.with(|page| page.counts))/> }
    };
    let form = view! { <Narrow query=query.clone()/> };
    let is_full = Memo::new(move |_| page.with(|page| page.disk_full));
    view! {
        {move || is_full.get().then(|| view! { <DiskFull/> })}
        <div class="toolbar">{filters}{form}</div>
        {chips}
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    let (back, rows) = (back.clone(), Signal::derive(move || page.track()));
                    let table = view! { <Rows page=page caption=caption back=back.clone()/> };
                    view! { <Picking to="/jobs/bulk" back=back offers=offers() rows=rows>{table}</Picking> }.erased()
                } else if filtered {
                    view! {
                        <Empty glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                            <a class="btn btn-sm" href="/jobs">{words.show_all}</a>
                        </Empty>
                    }
                    .erased()
                } else {
                    view! {
                        <Empty glyph=Glyph::Jobs title=words.none_yet text=words.none_yet_hint>
                            <TrainLink/>
                        </Empty>
                    }
                    .erased()
                }
            }}
        </div>
        {move || page.with(|page| pager(&query, page))}
    }
    .erased()
}

/// Whose jobs, with which label, and from when: a form, so that the address says it.
#[component]
fn Narrow(query: JobsQuery) -> impl IntoView {
    let words = &t().work;
    let sees_all = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::JobViewAll));
    let hidden = |name: &'static str, value: Option<String>| {
        value.map(|value| view! { <input type="hidden" name=name value=value/> })
    };
    let moment = |name: &'static str, label: &'static str, value: Option<String>| {
        view! {
            <span class="narrow-when">
                <label for=name>{label}" (UTC)"</label>
                <input class="input input-sm" type="datetime-local" id=name name=name value=field_moment(value.as_ref())/>
            </span>
        }
    };
    let user = sees_all.then(|| {
        view! {
            <label class="sr-only" for="user">{words.of_user}</label>
            <input class="input input-sm" id="user" name="user" placeholder=words.of_user value=query.user.clone() autocomplete="off"/>
        }
    });
    view! {
        <form class="narrow" method="get" action="/jobs" role="search">
            {hidden("status", query.status.map(|status| status.as_str().to_owned()))}
            {hidden("phase", query.phase.map(|phase| phase.as_str().to_owned()))}
            {hidden("worker", query.worker.map(|worker| worker.to_string()))}
            {hidden("ended_since", query.ended_since)}
            {user}
            <label class="sr-only" for="label">{words.with_label}</label>
            <input class="input input-sm" id="label" name="label" placeholder=words.with_label value=query.label.clone() autocomplete="off"/>
            {moment("since", words.since, query.since)}
            {moment("until", words.until, query.until)}
            <button class="btn btn-sm">{words.narrow}</button>
        </form>
    }
    .erased()
}

/// What the row of states does not show, each with the way to do without it.
#[component]
fn Chips(query: JobsQuery, page: RwSignal<JobsPage>) -> impl IntoView {
    let words = t();
    let first = JobsQuery { cursor: None, ..query.clone() };
    let chip = |text: String, without: JobsQuery| {
        let name = words.work.without.of(&text);
        view! {
            <li><a class="chip chip-link" href=jobs_address(&without) aria-label=name><span class="wrap-anywhere">{text}</span><Icon glyph=Glyph::Cross/></a></li>
        }
    };
    // Its name stands with the jobs that it has.
    let name = |id: WorkerId| {
        let named =
            |page: &JobsPage| page.jobs.iter().find(|job| job.worker_id.as_ref() == Some(&id))?.worker_name.clone();
        page.with_untracked(named).unwrap_or_else(|| short_id(id.as_str()))
    };
    let since = |word: &str, moment: String| {
        let told = Timestamp::parse_rfc3339(&moment).map_or(moment, |at| words.moment(at));
        format!("{word}: {told}")
    };
    let chips = [
        query.user.map(|user| chip(words.job.submitted_by.of(user), JobsQuery { user: None, ..first.clone() })),
        query.label.map(|label| chip(label, JobsQuery { label: None, ..first.clone() })),
        query.worker.map(|id| {
            chip(format!("{}: {}", words.jobs.worker, name(id)), JobsQuery { worker: None, ..first.clone() })
        }),
        query.since.map(|at| chip(since(words.work.since, at), JobsQuery { since: None, ..first.clone() })),
        query.until.map(|at| chip(since(words.work.until, at), JobsQuery { until: None, ..first.clone() })),
        query
            .ended_since
            .map(|at| chip(since(words.work.ended_since, at), JobsQuery { ended_since: None, ..first.clone() })),
    ];
    let chips: Vec<_> = chips.into_iter().flatten().collect();
    (!chips.is_empty()).then(|| view! { <ul class="chips">{chips}</ul> }).erased()
}

fn pager(query: &JobsQuery, page: &JobsPage) -> AnyView {
    let words = &t().jobs;
    let to = |cursor| jobs_address(&JobsQuery { cursor, ..query.clone() });
    let newest = query.cursor.is_some().then(|| to(None));
    let older = page.next_cursor.clone().map(|cursor| to(Some(cursor)));
    // Those that wait are told from the next one on.
    let is_newest_first = query.phase != Some(Phase::Waiting);
    let names =
        if is_newest_first { (t().common.newer, t().common.older) } else { (t().common.first, t().workers.next) };
    view! { <Pager label=words.title first=newest next=older total=words.total.of(page.total) names=names/> }.erased()
}

/// The states, counted among the jobs that the other filters let through.
fn filters(query: &JobsQuery, counts: JobCounts) -> Vec<Filter> {
    let words = t();
    let active = counts.waiting + counts.running;
    let ended = counts.completed + counts.failed + counts.cancelled;
    let of = |label, count, status, phase| Filter {
        href: jobs_address(&JobsQuery { status, phase, cursor: None, ..query.clone() }),
        label,
        count: Some(count),
        current: query.status == status && query.phase == phase,
    };
    let by_phase = |label, count, phase| of(label, count, None, Some(phase));
    let mut filters = vec![
        of(words.common.all, active + ended, None, None),
        by_phase(words.work.waiting, counts.waiting, Phase::Waiting),
        by_phase(words.status.running, counts.running, Phase::Running),
        of(words.status.completed, counts.completed, Some(JobStatus::Completed), None),
        of(words.status.failed, counts.failed, Some(JobStatus::Failed), None),
        of(words.status.cancelled, counts.cancelled, Some(JobStatus::Cancelled), None),
    ];
    // What only links ask for is among them while it is.
    match (query.phase, query.status) {
        (Some(Phase::Active), None) => filters.insert(1, by_phase(words.jobs.active, active, Phase::Active)),
        (Some(Phase::Ended), None) => filters.push(by_phase(words.jobs.ended, ended, Phase::Ended)),
        _ => {}
    }
    filters
}
