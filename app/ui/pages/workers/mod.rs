//! The live list of workers: read-only on the page Fleet, and with its actions in Administration → Workers.

mod facets;
mod query;
mod queue;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::facets::{FacetPanel, status_filters};
use self::query::{ListPlace, export_url, is_filtered, query_from_params};
use self::queue::QueuePanel;
use crate::domain::access::Permission;
use crate::protocol::status::BulkTarget;
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkersPage, WorkersQuery};
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::bulk_action::permitted_actions;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::filters::FilterBar;
use crate::ui::components::fleet_tabs::{FleetTab, FleetTabs};
use crate::ui::components::list_controls::{ListPager, ListSearch, PageWindow};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::row_selection::RowSelection;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::sort_header::SortColumn;
use crate::ui::components::worker_table::{SortColumns, WorkerTable};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::query_pairs;
use crate::ui::permissions::has_permission;
use crate::ui::view_scope::ViewScope;

/// The workers, and the jobs that wait for them.
#[component]
pub(crate) fn FleetPage() -> impl IntoView {
    let words = &t().fleet;
    view! {
        <PageHeader title=words.title intro=words.intro/>
        <FleetTabs tab=FleetTab::Workers/>
        <div class="space-y-6">
            <div><LoadedWorkers place=ListPlace::Fleet/></div>
            <QueuePanel/>
        </div>
    }
    .into_erased()
}

#[component]
pub(crate) fn WorkersPage() -> impl IntoView {
    let words = &t().workers;
    let create = has_permission(Permission::AdminWorkers).then(|| {
        view! { <ButtonLink href="/admin/workers/new" label=words.create glyph=Glyph::Plus key="c"/> }
    });
    view! {
        <PageHeader title=words.title intro=words.intro>{create}</PageHeader>
        <LoadedWorkers place=ListPlace::Administration/>
    }
    .into_erased()
}

/// The list for the filters in the address, updated live.
#[component]
fn LoadedWorkers(place: ListPlace) -> impl IntoView {
    let backend = use_backend();
    let params = use_query_map();
    let query = Memo::new(move |_| params.with(query_from_params));
    let page = Resource::new(move || query.get(), {
        let backend = backend.clone();
        move |query| backend.workers(query)
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend, query) = (scope.clone(), backend.clone(), query.get());
        Suspend::new(async move {
            match page.await {
                Ok(first) => scope.render(|| {
                    view! { <WorkerList place=place first=first query=query backend=backend/> }.into_erased()
                }),
                Err(problem) if problem.code == "invalid_search" => view! {
                    {search_form(place, query.q.clone(), query.sort)}
                    <ProblemNotice problem=problem/>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

fn search_form(place: ListPlace, q: Option<String>, sort: Option<String>) -> AnyView {
    let hidden_fields = query_pairs(&WorkersQuery { sort, ..WorkersQuery::default() });
    view! { <ListSearch action=place.path() q=q hidden_fields=hidden_fields hint=t().workers.search_hint/> }
        .into_erased()
}

#[component]
fn WorkerList(place: ListPlace, first: WorkersPage, query: WorkersQuery, backend: SharedBackend) -> impl IntoView {
    let words = &t().workers;
    let q = first.q.clone();
    let page = live_signal(first, &[Topic::Workers], {
        let query = query.clone();
        move || backend.workers(query.clone())
    });
    let filtered = is_filtered(&query);
    let is_empty = Memo::new(move |_| page.with(|page| page.workers.is_empty()));
    let (heads, back) = (sort_columns(place, &query), place.url(&query));
    let filters = {
        let query = query.clone();
        move || view! { <FilterBar label=words.filter filters=page.with(|page| status_filters(place, &query, page))/> }
    };
    view! {
        {filters}
        <div class="asking">
            {search_form(place, Some(q), query.sort.clone())}
            <FacetPanel place=place page=page query=query.clone()/>
        </div>
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    let actions = if place == ListPlace::Administration { permitted_actions(BulkTarget::Workers) } else { Vec::new() };
                    let table = view! { <WorkerTable page=page heads=heads.clone() list=place.path() has_selection=!actions.is_empty()/> };
                    if actions.is_empty() {
                        return table.into_erased();
                    }
                    let (back, rows) = (back.clone(), Signal::derive(move || page.track()));
                    view! { <RowSelection to="/admin/workers/bulk" back=back actions=actions rows=rows>{table}</RowSelection> }.into_erased()
                } else if filtered {
                    view! {
                        <EmptyPanel glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                            <a class="btn btn-sm" href=place.path()>{words.clear}</a>
                        </EmptyPanel>
                    }
                    .into_erased()
                } else {
                    view! {
                        <EmptyPanel glyph=Glyph::Workers title=words.none_yet text=words.none_yet_hint>
                            {create_link()}
                        </EmptyPanel>
                    }
                    .into_erased()
                }
            }}
        </div>
        {move || {
            let (exports, query) = (export_links(&query), query.clone());
            let page_url = move |cursor: String| place.url(&WorkersQuery { cursor: Some(cursor), ..query.clone() });
            view! { <ListPager name=words.title around=page.with(page_window) to=page_url between=exports/> }
        }}
    }
    .into_erased()
}

/// The link to create a worker, if permitted.
pub(super) fn create_link() -> AnyView {
    let link = || view! { <ButtonLink href="/admin/workers/new" label=t().workers.create glyph=Glyph::Plus/> };
    has_permission(Permission::AdminWorkers).then(link).into_erased()
}

fn page_window(page: &WorkersPage) -> PageWindow {
    let (previous, next) = (page.previous_cursor.clone(), page.next_cursor.clone());
    PageWindow { before: page.before, shown: page.workers.len() as u64, total: page.total, previous, next }
}

/// Links to download all workers that match the filters.
fn export_links(query: &WorkersQuery) -> AnyView {
    let export = |path| export_url(path, query);
    view! {
        <span class="text-muted">{t().workers.export}</span>
        <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers/export") download="workers.csv">"CSV"</a>
        <a class="btn btn-sm btn-ghost" rel="external" href=export("/api/admin/workers") download="workers.json">"JSON"</a>
    }
    .into_erased()
}

/// The columns that the list can be sorted by.
fn sort_columns(place: ListPlace, query: &WorkersQuery) -> SortColumns {
    let url = |sort| place.url(&WorkersQuery { sort, cursor: None, ..query.clone() });
    let head = |by, largest_first| SortColumn::new(query.sort.as_deref(), "name", by, largest_first, url);
    SortColumns {
        name: head("name", false),
        status: head("status", false),
        gpus: head("gpus", true),
        seen: head("seen", true),
    }
}
