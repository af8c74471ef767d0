//! The list of jobs: what waits, what runs, what ran.

mod query;
mod row;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::query::{address, is_filtered, query_of};
use self::row::{Rows, offers};
use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::protocol::queue::{JobCounts, JobsPage, JobsQuery};
use crate::protocol::status::{JobStatus, Phase};
use crate::protocol::topic::Topic;
use crate::ui::components::action::TrainLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::pager::Pager;
use crate::ui::components::picking::Picking;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

/// All jobs that the reader may see, newest first.
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
    let is_empty = Memo::new(move |_| page.with(|page| page.jobs.is_empty()));
    let back = address(&query);
    let chips = view! { <Chips query=query.clone()/> };
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=filters(&query, page.with(|page| page.counts))/> }
    };
    let form = view! { <Narrow query=query.clone()/> };
    view! {
        <div class="toolbar">{filters}{form}</div>
        {chips}
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    let (back, rows) = (back.clone(), Signal::derive(move || page.track()));
                    let table = view! { <Rows page=page back=back.clone()/> };
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

/// Whose jobs, and with which label: a form, so that the address says it.
#[component]
fn Narrow(query: JobsQuery) -> impl IntoView {
    let words = &t().work;
    let sees_all = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::JobViewAll));
    let hidden = |name: &'static str, value: Option<&'static str>| {
        value.map(|value| view! { <input type="hidden" name=name value=value/> })
    };
    let user = sees_all.then(|| {
        view! {
            <label class="sr-only" for="user">{words.of_user}</label>
            <input class="input input-sm" id="user" name="user" placeholder=words.of_user value=query.user.clone() autocomplete="off"/>
        }
    });
    view! {
        <form class="narrow" method="get" action="/jobs" role="search">
            {hidden("status", query.status.map(JobStatus::as_str))}
            {hidden("phase", query.phase.map(Phase::as_str))}
            {user}
            <label class="sr-only" for="label">{words.with_label}</label>
            <input class="input input-sm" id="label" name="label" placeholder=words.with_label value=query.label.clone() autocomplete="off"/>
            <button class="btn btn-sm">{words.narrow}</button>
        </form>
    }
    .erased()
}

/// What the row of states does not show, each with the way to do without it.
#[component]
fn Chips(query: JobsQuery) -> impl IntoView {
    let words = t();
    let first = JobsQuery { cursor: None, ..query.clone() };
    let chip = |text: String, without: JobsQuery| {
        let name = words.work.without.of(&text);
        view! {
            <li><a class="chip chip-link" href=address(&without) aria-label=name><span class="wrap-anywhere">{text}</span><Icon glyph=Glyph::Cross/></a></li>
        }
    };
    let user = query.user.map(|user| chip(words.job.submitted_by.of(user), JobsQuery { user: None, ..first.clone() }));
    let label = query.label.map(|label| chip(label, JobsQuery { label: None, ..first.clone() }));
    let has_any = user.is_some() || label.is_some();
    has_any.then(|| view! { <ul class="chips">{user}{label}</ul> }).erased()
}

fn pager(query: &JobsQuery, page: &JobsPage) -> AnyView {
    let words = &t().jobs;
    let to = |cursor| address(&JobsQuery { cursor, ..query.clone() });
    let newest = query.cursor.is_some().then(|| to(None));
    let older = page.next_cursor.clone().map(|cursor| to(Some(cursor)));
    view! { <Pager label=words.title first=newest next=older total=words.total.of(page.total)/> }.erased()
}

/// The states, counted among the jobs of the person and with the label that are asked for.
fn filters(query: &JobsQuery, counts: JobCounts) -> Vec<Filter> {
    let words = t();
    let active = counts.waiting + counts.running;
    let ended = counts.completed + counts.failed + counts.cancelled;
    let of = |label, count, status, phase| Filter {
        href: address(&JobsQuery { status, phase, cursor: None, ..query.clone() }),
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
        (None, Some(JobStatus::Queued)) => {
            filters.insert(1, of(words.status.queued, counts.waiting, query.status, None));
        }
        _ => {}
    }
    filters
}
