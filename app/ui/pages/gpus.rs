//! All GPUs of the fleet, grouped by worker or by the value of a label: as tiles, as tables, or as squares.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::workers::create_link;
use crate::domain::ids::WorkerId;
use crate::protocol::gpus::history::HistoryRange;
use crate::protocol::gpus::{GpuGroup, GpusPage, GpusQuery};
use crate::protocol::status::GpuState;
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerView;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::filters::{FilterBar, FilterLink};
use crate::ui::components::fleet_tabs::{FleetTab, FleetTabs};
use crate::ui::components::gpu_squares::{GpuLegend, GpuSquares};
use crate::ui::components::gpu_state::gpu_state_style;
use crate::ui::components::gpu_table::{GpuRows, gpu_entries};
use crate::ui::components::gpu_tile::GpuTiles;
use crate::ui::components::list_controls::{ListPager, ListSearch, PageWindow};
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::worker_badge::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::FLEET_GPUS;
use crate::ui::page_query::{from_params, query_pairs, query_string};
use crate::ui::view_scope::ViewScope;

/// Number of workers per page.
const PAGE_SIZE: u32 = 50;
/// Number of workers per page in the layout with squares.
const DENSE_PAGE_SIZE: u32 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum GpuLayout {
    #[default]
    Tiles,
    Table,
    Squares,
}

/// The state of the page, as stored in its address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct GpuFilters {
    state: Option<GpuState>,
    q: Option<String>,
    cursor: Option<String>,
    layout: GpuLayout,
    group: Option<String>,
    range: HistoryRange,
}

impl GpuFilters {
    fn from_params(params: &ParamsMap) -> Self {
        let GpusQuery { state, q, group, cursor, .. } = from_params(params);
        let is = |key: &str, value: &str| params.get_str(key) == Some(value);
        let range = if is("range", "day") { HistoryRange::Day } else { HistoryRange::Hour };
        let layout = match params.get_str("view") {
            Some("table") => GpuLayout::Table,
            Some("squares") => GpuLayout::Squares,
            _ => GpuLayout::Tiles,
        };
        Self { state, q, cursor, layout, group, range }
    }

    fn to_query(&self) -> GpusQuery {
        let Self { state, q, cursor, layout, group, range } = self.clone();
        let (lately, limit) =
            if layout == GpuLayout::Squares { (None, DENSE_PAGE_SIZE) } else { (Some(range), PAGE_SIZE) };
        GpusQuery { state, q, group, lately, limit: Some(limit), cursor }
    }

    /// The query parameters, except search and cursor.
    fn url_params(&self) -> [(&'static str, Option<String>); 4] {
        let view = match self.layout {
            GpuLayout::Tiles => None,
            GpuLayout::Table => Some("table"),
            GpuLayout::Squares => Some("squares"),
        };
        [
            ("state", self.state.map(|state| state.as_str().to_owned())),
            ("view", view.map(str::to_owned)),
            ("group", self.group.clone()),
            ("range", (self.range == HistoryRange::Day).then(|| "day".to_owned())),
        ]
    }

    fn href(&self) -> String {
        let [state, view, group, range] = self.url_params();
        let (q, cursor) = (("q", self.q.clone()), ("cursor", self.cursor.clone()));
        format!("{FLEET_GPUS}{}", query_string(&[state, q, view, group, range, cursor]))
    }
}

/// The GPU page with live values.
#[component]
pub(crate) fn GpusPage() -> impl IntoView {
    let words = &t().gpus;
    let backend = use_backend();
    let params = use_query_map();
    let filters = Memo::new(move |_| params.with(GpuFilters::from_params));
    let page = Resource::new(move || filters.get(), {
        let backend = backend.clone();
        move |filters: GpuFilters| backend.gpus(filters.to_query())
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend, filters) = (scope.clone(), backend.clone(), filters.get());
        Suspend::new(async move {
            match page.await {
                Ok(first) => {
                    scope.render(|| view! { <GpuList first=first filters=filters backend=backend/> }.into_erased())
                }
                Err(problem) if problem.code == "invalid_search" => view! {
                    <GpuSearch filters=filters/>
                    <ProblemNotice problem=problem/>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=t().fleet.title intro=words.intro>
            {move || view! { <LayoutSwitch filters=filters.get()/> }}
        </PageHeader>
        <FleetTabs tab=FleetTab::Gpus/>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .into_erased()
}

#[component]
fn LayoutSwitch(filters: GpuFilters) -> impl IntoView {
    let (words, ranges) = (&t().gpus, &t().charts);
    let view = |label, layout| {
        let href = GpuFilters { layout, ..filters.clone() }.href();
        FilterLink { href, label, count: None, current: filters.layout == layout }
    };
    let range = |label, range| {
        let href = GpuFilters { range, ..filters.clone() }.href();
        FilterLink { href, label, count: None, current: filters.range == range }
    };
    let layouts = vec![
        view(words.as_tiles, GpuLayout::Tiles),
        view(words.as_table, GpuLayout::Table),
        view(words.as_squares, GpuLayout::Squares),
    ];
    // Squares are too small for a chart.
    let ranges = (filters.layout != GpuLayout::Squares).then(|| {
        let links = vec![range(ranges.hour, HistoryRange::Hour), range(ranges.day, HistoryRange::Day)];
        view! { <FilterBar label=ranges.range filters=links/> }
    });
    view! {
        {ranges}
        <FilterBar label=words.view filters=layouts/>
    }
    .into_erased()
}

#[component]
fn GpuSearch(filters: GpuFilters) -> impl IntoView {
    let hidden_fields = query_pairs(&filters.url_params());
    view! { <ListSearch action=FLEET_GPUS q=filters.q hidden_fields=hidden_fields hint=t().workers.search_hint/> }
        .into_erased()
}

#[component]
fn GpuList(first: GpusPage, filters: GpuFilters, backend: SharedBackend) -> impl IntoView {
    let words = &t().gpus;
    let page = live_signal(first, &[Topic::Workers, Topic::Jobs, Topic::Gpus], {
        let query = filters.to_query();
        move || backend.gpus(query.clone())
    });
    let groups = Memo::new(move |_| page.with(group_workers));
    let (layout, key) = (filters.layout, filters.group.clone());
    let is_narrowed = filters.state.is_some() || filters.q.is_some() || filters.cursor.is_some();
    // A search selects workers. If it matches some, none of their GPUs is in the selected state.
    let has_workers = Memo::new(move |_| page.with(|page| page.counts.connected() + page.counts.not_connected > 0));
    let body = move || match (groups.with(|groups| groups.iter().all(Vec::is_empty)), is_narrowed) {
        (false, _) => {
            let worker_group =
                |(index, ids)| view! { <WorkerGroup index=index ids=ids key=key.clone() page=page layout=layout/> };
            let each = groups.get().into_iter().enumerate().map(worker_group);
            view! {
                {(layout == GpuLayout::Squares).then(|| view! { <GpuLegend/> })}
                <div class="space-y-6">{each.collect_view()}</div>
            }
            .into_erased()
        }
        (true, true) => {
            let (none, hint) = if has_workers.get() {
                (words.none_match, words.none_match_hint)
            } else {
                (t().workers.none_match, t().workers.none_match_hint)
            };
            view! {
                <div class="panel">
                    <EmptyPanel glyph=Glyph::Search title=none text=hint>
                        <a class="btn btn-sm" href=FLEET_GPUS>{words.show_all}</a>
                    </EmptyPanel>
                </div>
            }
            .into_erased()
        }
        (true, false) => view! {
            <div class="panel">
                <EmptyPanel glyph=Glyph::Gpu title=words.none_yet text=words.none_yet_hint>
                    {create_link()}
                </EmptyPanel>
            </div>
        }
        .into_erased(),
    };
    let group_select = {
        let filters = filters.clone();
        let keys = Memo::new(move |_| page.with(|page| page.label_keys.clone()));
        move || view! { <GroupBySelect filters=filters.clone() keys=keys.get()/> }
    };
    let state_links = {
        let filters = filters.clone();
        move || view! { <FilterBar label=words.state filters=page.with(|page| state_filters(&filters, page))/> }
    };
    let pager = {
        let filters = filters.clone();
        move || {
            let filters = filters.clone();
            let to = move |cursor: String| GpuFilters { cursor: Some(cursor), ..filters.clone() }.href();
            let around = page.with(page_window);
            (around.total > 0).then(|| view! { <ListPager name=words.title around=around to=to/> })
        }
    };
    view! {
        {state_links}
        <div class="gpu-asking"><GpuSearch filters=filters.clone()/>{group_select}</div>
        {body}
        {pager}
    }
    .into_erased()
}

/// The filters by state.
fn state_filters(filters: &GpuFilters, page: &GpusPage) -> Vec<FilterLink> {
    let counts = page.counts;
    let filter = |state: Option<GpuState>| FilterLink {
        href: GpuFilters { state, cursor: None, ..filters.clone() }.href(),
        label: state.map_or(t().common.all, |state| gpu_state_style(state).label),
        count: Some(state.map_or(counts.connected() + counts.not_connected, |state| counts.count(state))),
        current: filters.state == state,
    };
    std::iter::once(None).chain(GpuState::ALL.iter().copied().map(Some)).map(filter).collect()
}

fn page_window(page: &GpusPage) -> PageWindow {
    let (previous, next) = (page.previous_cursor.clone(), page.next_cursor.clone());
    PageWindow { before: page.before, shown: page.workers.len() as u64, total: page.total, previous, next }
}

/// The workers of each group on the page; without groups, all of them.
fn group_workers(page: &GpusPage) -> Vec<Vec<WorkerId>> {
    let mut ids = page.workers.iter().map(|worker| worker.id.clone());
    if page.groups.is_empty() {
        return vec![ids.collect()];
    }
    let group_ids = |group: &GpuGroup| ids.by_ref().take(usize::try_from(group.shown).unwrap_or(usize::MAX)).collect();
    page.groups.iter().map(group_ids).collect()
}

/// Selects the label to group by: a form, because there may be many labels, that works without JavaScript.
#[component]
fn GroupBySelect(filters: GpuFilters, keys: Vec<String>) -> impl IntoView {
    let words = &t().gpus;
    let hidden_fields =
        [("q", filters.q.clone())].into_iter().chain(filters.url_params()).filter(|(name, _)| *name != "group");
    let hidden_fields = hidden_fields
        .filter_map(|(name, value)| value.map(|value| view! { <input type="hidden" name=name value=value/> }))
        .collect_view();
    let option = |key: String| {
        let value = format!("label.{key}");
        view! { <option value=value.clone() selected=filters.group.as_ref() == Some(&value)>{key}</option> }
    };
    let options = keys.into_iter().map(option).collect_view();
    let any = !options.is_empty();
    any.then(|| {
        view! {
            <form method="get" action=FLEET_GPUS class="gpu-by">
                {hidden_fields}
                <label for="group">{words.group_by}</label>
                <select class="select select-sm" id="group" name="group">
                    <option value="">{t().jobs.worker}</option>
                    {options}
                </select>
                <button class="btn btn-sm">{words.apply}</button>
            </form>
        }
    })
    .into_erased()
}

/// The workers of one group, below its name and GPU counts; without groups there is no heading.
#[component]
fn WorkerGroup(
    index: usize,
    ids: Vec<WorkerId>,
    key: Option<String>,
    page: RwSignal<GpusPage>,
    layout: GpuLayout,
) -> impl IntoView {
    let grouped = key.is_some();
    let head = key.map(|key| {
        let group = Memo::new(move |_| page.with(|page| page.groups.get(index).cloned().unwrap_or_default()));
        move || {
            let (name, note) = group_heading(key.trim_start_matches("label."), &group.get());
            view! { <h2 class="gpu-group"><bdi class="wrap-anywhere">{name}</bdi><span>{note}</span></h2> }
        }
    });
    let each = ids
        .into_iter()
        .map(|id| view! { <WorkerGpusPanel id=id page=page layout=layout grouped=grouped/> })
        .collect_view();
    let body = match layout {
        GpuLayout::Squares => view! { <div class="panel"><div class="gpu-hosts">{each}</div></div> }.into_erased(),
        GpuLayout::Tiles | GpuLayout::Table => view! { <div class="space-y-6">{each}</div> }.into_erased(),
    };
    view! { <div>{head} {body}</div> }.into_erased()
}

/// The name of a group, and its GPU counts.
fn group_heading(key: &str, group: &GpuGroup) -> (String, String) {
    let words = &t().gpus;
    let name = group.value.as_ref().map_or_else(|| words.no_value.of(key), |value| format!("{key} = {value}"));
    let states = GpuState::ALL.iter().filter(|state| group.counts.count(**state) > 0);
    let states = states
        .map(|state| format!("{} {}", gpu_state_style(*state).label, t().format_integer(group.counts.count(*state))));
    let shown_here = (group.shown < group.total).then(|| words.here.of(t().format_integer(group.shown)));
    let note = std::iter::once(t().workers.total.of(group.total)).chain(shown_here).chain(states);
    (name, note.collect::<Vec<_>>().join(" · "))
}

/// The GPUs of one worker, rendered again only when this worker changes.
#[component]
fn WorkerGpusPanel(id: WorkerId, page: RwSignal<GpusPage>, layout: GpuLayout, grouped: bool) -> impl IntoView {
    let (name_id, worker_id) = (format!("gpus-{id}"), id.clone());
    let worker = Memo::new(move |_| page.with(|page| page.workers.iter().find(|worker| worker.id == id).cloned()));
    let shown = move || {
        let worker: WorkerView = worker.get()?;
        let (rows, name) = (gpu_entries(&worker), worker.name.clone());
        let body = match layout {
            GpuLayout::Table => view! { <GpuRows rows=rows/> }.into_erased(),
            GpuLayout::Tiles => view! { <GpuTiles worker=worker_id.clone() rows=rows/> }.into_erased(),
            GpuLayout::Squares => {
                view! { <GpuSquares worker=worker_id.clone() name=name.clone() rows=rows/> }.into_erased()
            }
        };
        let (panel, head) = if layout == GpuLayout::Squares { ("", "gpu-host-name") } else { ("panel", "panel-head") };
        let badge = (layout != GpuLayout::Squares)
            .then(|| view! { <span class="panel-note flex flex-wrap gap-x-3"><WorkerBadge worker=worker/></span> });
        let title = view! { <a class="row-link" href=format!("/admin/workers/{worker_id}")>{name}</a>{badge} };
        // Below the heading of the group.
        let head = if grouped {
            view! { <h3 id=name_id.clone() class=head>{title}</h3> }.into_erased()
        } else {
            view! { <h2 id=name_id.clone() class=head>{title}</h2> }.into_erased()
        };
        Some(view! { <section class=panel aria-labelledby=name_id.clone()>{head}{body}</section> }.into_erased())
    };
    view! { {shown} }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_filters_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in [
            ("state", "in_use"),
            ("q", "gpu:a100*"),
            ("view", "table"),
            ("group", "label.team"),
            ("range", "day"),
            ("cursor", "rack-7"),
        ] {
            params.insert(name, value.to_owned());
        }
        let filters = GpuFilters::from_params(&params);
        assert_eq!(
            filters.href(),
            "/fleet/gpus?state=in_use&q=gpu%3Aa100*&view=table&group=label.team&range=day&cursor=rack-7"
        );
        assert_eq!(filters.to_query().state, Some(GpuState::InUse));
        assert_eq!(GpuFilters::from_params(&ParamsMap::new()).href(), FLEET_GPUS);
    }
}
