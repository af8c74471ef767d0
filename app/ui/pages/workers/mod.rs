//! Administration → Workers: a page of the list, which follows it.

mod facets;
mod query;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::facets::{Narrowing, states};
use self::query::{address, exported, is_filtered, query_of, sorted};
use super::{Skeleton, use_port};
use crate::domain::access::Permission;
use crate::protocol::status::BulkAction;
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkersPage, WorkersQuery};
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::filters::Filters;
use crate::ui::components::icon::Glyph;
use crate::ui::components::list::{Around, ListPager, ListSearch};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::picking::{Offer, Picking};
use crate::ui::components::worker_table::{Head, Heads, WorkerTable};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;
use crate::ui::prefs::Prefs;

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
                    {search(query.q.clone(), query.sort)}
                    <Refusal problem=problem/>
                }
                .erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    let creates = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::AdminWorkers));
    let create = creates.then(|| {
        view! { <ButtonLink href="/admin/workers/new" label=words.create glyph=Glyph::Plus key="c"/> }
    });
    view! {
        <PageHead title=words.title intro=words.intro>{create}</PageHead>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .erased()
}

fn search(q: Option<String>, sort: Option<String>) -> AnyView {
    view! { <ListSearch action="/admin/workers" q=q keeps=vec![("sort", sort)] hint=t().workers.search_hint/> }.erased()
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
    let (heads, back) = (heads(&query), address(&query));
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=page.with(|page| states(&query, page))/> }
    };
    view! {
        {filters}
        <div class="asking">
            {search(Some(q), query.sort.clone())}
            <Narrowing page=page query=query.clone()/>
        </div>
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    let (back, rows) = (back.clone(), Signal::derive(move || page.track()));
                    let table = view! { <WorkerTable page=page heads=heads.clone()/> };
                    view! { <Picking to="/admin/workers/bulk" back=back offers=offers() rows=rows>{table}</Picking> }.erased()
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
        {move || {
            let (exports, query) = (exports(&query), query.clone());
            let to = move |cursor: String| address(&WorkersQuery { cursor: Some(cursor), ..query.clone() });
            view! { <ListPager name=words.title around=page.with(around) to=to between=exports/> }
        }}
    }
    .erased()
}

/// What can be done to those that are picked.
fn offers() -> Vec<Offer> {
    let words = t();
    let offer = |action, label, glyph, key| Offer { action, label, glyph, key };
    vec![
        offer(BulkAction::Drain, words.worker.drain, Glyph::Drain, Some("d")),
        offer(BulkAction::Resume, words.worker.resume, Glyph::Play, None),
        offer(BulkAction::Delete, words.picking.delete, Glyph::Trash, None),
    ]
}

fn around(page: &WorkersPage) -> Around {
    let (previous, next) = (page.previous_cursor.clone(), page.next_cursor.clone());
    Around { before: page.before, shown: page.workers.len() as u64, total: page.total, previous, next }
}

/// The whole list, to be kept.
fn exports(query: &WorkersQuery) -> AnyView {
    let export = |path| exported(path, query);
    view! {
        <span class="text-muted">{t().workers.export}</span>
        <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers/export") download="workers.csv">"CSV"</a>
        <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers") download="workers.json">"JSON"</a>
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
