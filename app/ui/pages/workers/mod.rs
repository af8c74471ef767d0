//! Administration → Workers: a page of the list, which follows it.

mod facets;
mod query;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::facets::{Narrowing, states};
use self::query::{address, exported, is_filtered, query_of, sorted};
use super::{Skeleton, use_port};
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkersPage, WorkersQuery};
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::filters::Filters;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::worker_table::{Head, Heads, WorkerTable};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

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
                Err(problem) if problem.code == "invalid_search" => view! {
                    <Search q=query.q.clone().unwrap_or_default() query=query/>
                    <Refusal problem=problem/>
                }
                .erased(),
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
    let q = first.q.clone();
    let page = refreshed(first, &[Topic::Workers], {
        let query = query.clone();
        move || port.workers(query.clone())
    });
    let filtered = is_filtered(&query);
    let is_empty = Memo::new(move |_| page.with(|page| page.workers.is_empty()));
    let heads = heads(&query);
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=page.with(|page| states(&query, page))/> }
    };
    view! {
        {filters}
        <div class="asking">
            <Search q=q query=query.clone()/>
            <Narrowing page=page query=query.clone()/>
        </div>
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    view! { <WorkerTable page=page heads=heads.clone()/> }.erased()
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
        {move || page.with(|page| view! { <Pager query=query.clone() around=Around::of(page)/> })}
    }
    .erased()
}

/// Where a page is in the list.
struct Around {
    before: u64,
    shown: u64,
    total: u64,
    previous: Option<String>,
    next: Option<String>,
}

impl Around {
    fn of(page: &WorkersPage) -> Self {
        let (previous, next) = (page.previous_cursor.clone(), page.next_cursor.clone());
        Self { before: page.before, shown: page.workers.len() as u64, total: page.total, previous, next }
    }
}

#[component]
fn Pager(query: WorkersQuery, around: Around) -> impl IntoView {
    let words = &t().workers;
    let Around { before, shown, total, previous, next } = around;
    let whole = |number| t().whole(number);
    let range = (shown < total && shown > 0)
        .then(|| words.range.with(&[&whole(before + 1), &whole(before + shown), &whole(total)]));
    let to = |cursor: String| address(&WorkersQuery { cursor: Some(cursor), ..query.clone() });
    let (previous, next) = (previous.map(to), next.map(to));
    let export = |path| exported(path, &query);
    view! {
        <nav class="pager" aria-label=words.title>
            <span class="text-muted">{range.unwrap_or_else(|| words.total.of(total))}</span>
            <span class="text-muted">{words.export}</span>
            <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers/export") download="workers.csv">"CSV"</a>
            <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers") download="workers.json">"JSON"</a>
            {previous.map(|href| view! { <a class="btn btn-sm" href=href>{words.previous}</a> })}
            {next.map(|href| view! { <a class="btn btn-sm" href=href>{words.next}</a> })}
        </nav>
    }
    .erased()
}

/// The columns by which it can be sorted.
fn heads(query: &WorkersQuery) -> Heads {
    let head = |by, largest_first| {
        let (sorted, turned) = sorted(query, by, largest_first);
        Head { sorted, href: address(&turned) }
    };
    Heads {
        name: head("name", false),
        status: head("status", false),
        gpus: head("gpus", true),
        seen: head("seen", true),
    }
}

/// The question: a form that is loaded anew, so that what is not understood is said in the reader's language.
#[component]
fn Search(q: String, query: WorkersQuery) -> impl IntoView {
    let words = &t().workers;
    let sort = query.sort.map(|sort| view! { <input type="hidden" name="sort" value=sort/> });
    view! {
        <form method="get" action="/admin/workers" role="search" class="search grow">
            {sort}
            <Icon glyph=Glyph::Search/>
            <label class="sr-only" for="q">{words.search}</label>
            <input class="input input-sm w-full" id="q" name="q" type="search" placeholder=words.search_hint value=q
                autocomplete="off" autocapitalize="none" spellcheck="false"/>
        </form>
    }
    .erased()
}
