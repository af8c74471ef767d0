//! Every GPU of the fleet, by worker: as tiles, or as tables.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, use_port};
use crate::domain::ids::WorkerId;
use crate::protocol::history::Range;
use crate::protocol::topic::Topic;
use crate::protocol::workers::{WorkerView, WorkersPage, WorkersQuery};
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::gpu_state::GpuState;
use crate::ui::components::gpu_table::{GpuRows, Row, rows};
use crate::ui::components::gpu_tile::GpuTiles;
use crate::ui::components::icon::Glyph;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

/// What the address asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish {
    state: Option<GpuState>,
    as_table: bool,
    lately: Range,
}

impl Wish {
    fn of(params: &ParamsMap) -> Self {
        let state = params.get("state").and_then(|word| GpuState::parse(&word));
        let is = |key: &str, word: &str| params.get_str(key) == Some(word);
        let lately = if is("range", "day") { Range::Day } else { Range::Hour };
        Self { state, as_table: is("view", "table"), lately }
    }

    fn href(self) -> String {
        let state = self.state.map(|state| state.as_str().to_owned());
        let range = (self.lately == Range::Day).then(|| "day".to_owned());
        format!(
            "/gpus{}",
            query_string(&[("state", state), ("view", self.as_table.then(|| "table".to_owned())), ("range", range)])
        )
    }
}

/// The GPUs of one worker that are wished for.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    worker: WorkerView,
    rows: Vec<Row>,
}

fn groups(page: &WorkersPage, wish: Wish) -> Vec<Group> {
    let group = |worker: &WorkerView| {
        let mut rows = rows(worker);
        rows.retain(|row| wish.state.is_none_or(|state| row.state == state));
        (!rows.is_empty()).then(|| Group { worker: worker.clone(), rows })
    };
    page.workers.iter().filter_map(group).collect()
}

fn count(page: &WorkersPage, state: Option<GpuState>) -> u64 {
    let all = page.workers.iter().flat_map(|worker| worker.gpus.iter().map(|gpu| GpuState::of(worker.status, gpu)));
    all.filter(|now| state.is_none_or(|state| *now == state)).count() as u64
}

/// The GPUs, as they are now.
#[component]
pub(crate) fn GpusPage() -> impl IntoView {
    let words = &t().gpus;
    let port = use_port();
    let params = use_query_map();
    let wish = Memo::new(move |_| params.with(Wish::of));
    let lately = Memo::new(move |_| wish.get().lately);
    let page = Resource::new(move || lately.get(), {
        let port = port.clone();
        move |lately| port.workers(query(lately))
    });
    let shown = move || {
        let port = port.clone();
        Suspend::new(async move {
            match page.await {
                Ok(first) => view! { <Shown first=first wish=wish port=port/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title intro=words.intro>
            {move || view! { <Views wish=wish.get()/> }}
        </PageHead>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .erased()
}

fn query(lately: Range) -> WorkersQuery {
    WorkersQuery { gpus: true, lately: Some(lately), ..WorkersQuery::default() }
}

#[component]
fn Views(wish: Wish) -> impl IntoView {
    let (words, ranges) = (&t().gpus, &t().charts);
    let view = |label, as_table| {
        let href = Wish { as_table, ..wish }.href();
        Filter { href, label, count: None, current: wish.as_table == as_table }
    };
    let range = |label, lately| {
        let href = Wish { lately, ..wish }.href();
        Filter { href, label, count: None, current: wish.lately == lately }
    };
    view! {
        <Filters label=ranges.range filters=vec![range(ranges.hour, Range::Hour), range(ranges.day, Range::Day)]/>
        <Filters label=words.view filters=vec![view(words.as_tiles, false), view(words.as_table, true)]/>
    }
    .erased()
}

#[component]
fn Shown(first: WorkersPage, wish: Memo<Wish>, port: SharedPort) -> impl IntoView {
    let words = &t().gpus;
    let page = refreshed(first, &[Topic::Workers, Topic::Jobs, Topic::Gpus], move || {
        port.workers(query(wish.get_untracked().lately))
    });
    let groups = Memo::new(move |_| page.with(|page| groups(page, wish.get())));
    let has_any = Memo::new(move |_| page.with(|page| count(page, None) > 0));
    let ids =
        Memo::new(move |_| groups.with(|all| all.iter().map(|group| group.worker.id.clone()).collect::<Vec<_>>()));
    let filters = move || {
        let wish = wish.get();
        let filter = |state: Option<GpuState>| Filter {
            href: Wish { state, ..wish }.href(),
            label: state.map_or(t().common.all, |state| state.look(words).word),
            count: Some(page.with(|page| count(page, state))),
            current: wish.state == state,
        };
        let all = std::iter::once(None).chain(GpuState::ALL.into_iter().map(Some));
        view! { <Filters label=words.state filters=all.map(filter).collect()/> }
    };
    let body = move || match (ids.with(Vec::is_empty), has_any.get()) {
        (false, _) => {
            let each = ids.get().into_iter().map(|id| view! { <Panel id=id groups=groups wish=wish/> });
            view! { <div class="space-y-6">{each.collect_view()}</div> }.erased()
        }
        (true, true) => view! {
            <div class="panel">
                <Empty glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                    <a class="btn btn-sm" href="/gpus">{words.show_all}</a>
                </Empty>
            </div>
        }
        .erased(),
        (true, false) => view! {
            <div class="panel">
                <Empty glyph=Glyph::Gpu title=words.none_yet text=words.none_yet_hint>
                    <ButtonLink href="/admin/workers/new" label=t().workers.create glyph=Glyph::Plus/>
                </Empty>
            </div>
        }
        .erased(),
    };
    view! { {filters} {body} }.erased()
}

/// One worker; only what changed of it is drawn again.
#[component]
fn Panel(id: WorkerId, groups: Memo<Vec<Group>>, wish: Memo<Wish>) -> impl IntoView {
    let (name_id, of) = (format!("gpus-{id}"), id.clone());
    let group = Memo::new(move |_| groups.with(|all| all.iter().find(|group| group.worker.id == id).cloned()));
    let shown = move || {
        let Group { worker, rows } = group.get()?;
        let head = view! {
            <h2 id=name_id.clone() class="panel-head">
                <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
                <span class="panel-note flex flex-wrap gap-x-3"><WorkerBadge worker=worker/></span>
            </h2>
        };
        let body = if wish.get().as_table {
            view! { <GpuRows rows=rows/> }.erased()
        } else {
            view! { <GpuTiles worker=of.clone() rows=rows/> }.erased()
        };
        Some(view! { <section class="panel" aria-labelledby=name_id.clone()>{head} {body}</section> }.erased())
    };
    view! { {shown} }.erased()
}
