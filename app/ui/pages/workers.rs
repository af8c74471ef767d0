//! Administration → Workers.

use leptos::prelude::*;
use leptos_router::components::Form;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, use_port};
use crate::protocol::status::WorkerStatus;
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkerCounts, WorkersPage, WorkersQuery};
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::worker_table::WorkerTable;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

/// The filters as they stand in the address.
fn query_of(params: &ParamsMap) -> WorkersQuery {
    WorkersQuery {
        status: params.get("status").and_then(|word| WorkerStatus::parse(&word)),
        q: params.get("q").filter(|q| !q.trim().is_empty()),
        ..WorkersQuery::default()
    }
}

/// The fleet as a table that follows it.
#[component]
pub(crate) fn WorkersPage() -> impl IntoView {
    let words = &t().workers;
    let port = use_port();
    let params = use_query_map();
    let query = Memo::new(move |_| params.with(query_of));
    let page = Resource::new(move || query.get(), {
        let port = port.clone();
        move |query| port.workers(query)
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
        <PageHead title=words.title intro=words.intro>
            <ButtonLink href="/admin/workers/new" label=words.create glyph=Glyph::Plus key="c"/>
        </PageHead>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .erased()
}

#[component]
fn Shown(first: WorkersPage, query: WorkersQuery, port: SharedPort) -> impl IntoView {
    let words = &t().workers;
    let page = refreshed(first, &[Topic::Workers], {
        let query = query.clone();
        move || port.workers(query.clone())
    });
    let filtered = query.status.is_some() || query.q.is_some();
    let is_empty = Memo::new(move |_| page.with(|page| page.workers.is_empty()));
    let workers = Signal::derive(move || page.with(|page| page.workers.clone()));
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=filters(&query, page.with(|page| page.counts))/> }
    };
    view! {
        <div class="toolbar">
            {filters}
            <Search query=query/>
        </div>
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    view! { <WorkerTable workers=workers/> }.erased()
                } else if filtered {
                    view! {
                        <Empty glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                            <a class="btn btn-sm" href="/admin/workers">{words.clear}</a>
                        </Empty>
                    }
                    .erased()
                } else {
                    view! {
                        <Empty glyph=Glyph::Workers title=words.none_yet text=words.none_yet_hint>
                            <ButtonLink href="/admin/workers/new" label=words.create glyph=Glyph::Plus/>
                        </Empty>
                    }
                    .erased()
                }
            }}
        </div>
        <p class="mt-3 text-sm text-muted">{move || page.with(|page| words.total.of(page.total))}</p>
    }
    .erased()
}

#[component]
fn Search(query: WorkersQuery) -> impl IntoView {
    let words = &t().workers;
    let status = query.status.map(|status| view! { <input type="hidden" name="status" value=status.as_str()/> });
    view! {
        <Form method="GET" action="/admin/workers" attr:role="search" attr:class="search">
            {status}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{words.search}</label>
            <input class="input input-sm" id="q" name="q" type="search" placeholder=words.search_hint value=query.q.unwrap_or_default()/>
        </Form>
    }
    .erased()
}

fn filters(query: &WorkersQuery, counts: WorkerCounts) -> Vec<Filter> {
    let words = t();
    let count = |status| match status {
        WorkerStatus::Connecting => counts.connecting,
        WorkerStatus::Idle => counts.idle,
        WorkerStatus::Busy => counts.busy,
        WorkerStatus::Draining => counts.draining,
        WorkerStatus::Offline => counts.offline,
    };
    let label = |status| match status {
        WorkerStatus::Connecting => words.status.connecting,
        WorkerStatus::Idle => words.status.idle,
        WorkerStatus::Busy => words.status.busy,
        WorkerStatus::Draining => words.status.draining,
        WorkerStatus::Offline => words.status.offline,
    };
    let href = |status: Option<WorkerStatus>| {
        let status = status.map(|status| status.as_str().to_owned());
        format!("/admin/workers{}", query_string(&[("status", status), ("q", query.q.clone())]))
    };
    let all = Filter {
        href: href(None),
        label: words.common.all,
        count: Some(WorkerStatus::ALL.iter().copied().map(count).sum()),
        current: query.status.is_none(),
    };
    let shown = [WorkerStatus::Idle, WorkerStatus::Busy, WorkerStatus::Draining, WorkerStatus::Offline];
    let each = shown.into_iter().map(|status| Filter {
        href: href(Some(status)),
        label: label(status),
        count: Some(count(status)),
        current: query.status == Some(status),
    });
    std::iter::once(all).chain(each).collect()
}
