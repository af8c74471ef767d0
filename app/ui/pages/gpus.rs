//! Every GPU of the fleet, by worker: as tiles, or as tables.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, asked, use_port};
use crate::domain::ids::WorkerId;
use crate::protocol::gpus::{GpusPage, GpusQuery};
use crate::protocol::history::Range;
use crate::protocol::status::GpuState;
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerView;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::gpu_state::look;
use crate::ui::components::gpu_table::{GpuRows, rows};
use crate::ui::components::gpu_tile::GpuTiles;
use crate::ui::components::icon::Glyph;
use crate::ui::components::list::{Around, ListPager, ListSearch};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

/// The GPUs of so many workers are on a page.
const PAGE: u32 = 50;

/// What the address asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Wish {
    state: Option<GpuState>,
    q: Option<String>,
    cursor: Option<String>,
    as_table: bool,
    lately: Range,
}

impl Wish {
    fn of(params: &ParamsMap) -> Self {
        let state = params.get("state").and_then(|word| GpuState::parse(&word));
        let is = |key: &str, word: &str| params.get_str(key) == Some(word);
        let lately = if is("range", "day") { Range::Day } else { Range::Hour };
        let (q, cursor) = (asked(params, "q"), asked(params, "cursor"));
        Self { state, q, cursor, as_table: is("view", "table"), lately }
    }

    fn query(&self) -> GpusQuery {
        let Self { state, q, cursor, lately, .. } = self.clone();
        GpusQuery { state, q, lately: Some(lately), limit: Some(PAGE), cursor }
    }

    /// Its words in an address, but for the question and the place.
    fn words(&self) -> [(&'static str, Option<String>); 3] {
        [
            ("state", self.state.map(|state| state.as_str().to_owned())),
            ("view", self.as_table.then(|| "table".to_owned())),
            ("range", (self.lately == Range::Day).then(|| "day".to_owned())),
        ]
    }

    fn href(&self) -> String {
        let [state, view, range] = self.words();
        let (q, cursor) = (("q", self.q.clone()), ("cursor", self.cursor.clone()));
        format!("/gpus{}", query_string(&[state, q, view, range, cursor]))
    }
}

/// The GPUs, as they are now.
#[component]
pub(crate) fn GpusPage() -> impl IntoView {
    let words = &t().gpus;
    let port = use_port();
    let params = use_query_map();
    let wish = Memo::new(move |_| params.with(Wish::of));
    let page = Resource::new(move || wish.get(), {
        let port = port.clone();
        move |wish: Wish| port.gpus(wish.query())
    });
    let shown = move || {
        let (port, wish) = (port.clone(), wish.get());
        Suspend::new(async move {
            match page.await {
                Ok(first) => view! { <Shown first=first wish=wish port=port/> }.erased(),
                Err(problem) if problem.code == "invalid_search" => view! {
                    <Search wish=wish/>
                    <Refusal problem=problem/>
                }
                .erased(),
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

#[component]
fn Views(wish: Wish) -> impl IntoView {
    let (words, ranges) = (&t().gpus, &t().charts);
    let view = |label, as_table| {
        let href = Wish { as_table, ..wish.clone() }.href();
        Filter { href, label, count: None, current: wish.as_table == as_table }
    };
    let range = |label, lately| {
        let href = Wish { lately, ..wish.clone() }.href();
        Filter { href, label, count: None, current: wish.lately == lately }
    };
    view! {
        <Filters label=ranges.range filters=vec![range(ranges.hour, Range::Hour), range(ranges.day, Range::Day)]/>
        <Filters label=words.view filters=vec![view(words.as_tiles, false), view(words.as_table, true)]/>
    }
    .erased()
}

#[component]
fn Search(wish: Wish) -> impl IntoView {
    let keeps = wish.words().to_vec();
    view! { <ListSearch action="/gpus" q=wish.q keeps=keeps hint=t().workers.search_hint/> }.erased()
}

#[component]
fn Shown(first: GpusPage, wish: Wish, port: SharedPort) -> impl IntoView {
    let words = &t().gpus;
    let page = refreshed(first, &[Topic::Workers, Topic::Jobs, Topic::Gpus], {
        let query = wish.query();
        move || port.gpus(query.clone())
    });
    let ids =
        Memo::new(move |_| page.with(|page| page.workers.iter().map(|worker| worker.id.clone()).collect::<Vec<_>>()));
    let as_table = wish.as_table;
    let is_narrowed = wish.state.is_some() || wish.q.is_some() || wish.cursor.is_some();
    // A question is one for workers: nobody answers to it, or none of theirs is in the state.
    let any = Memo::new(move |_| page.with(|page| page.counts.connected() + page.counts.not_connected > 0));
    let body = move || match (ids.with(Vec::is_empty), is_narrowed) {
        (false, _) => {
            let each = ids.get().into_iter().map(|id| view! { <Panel id=id page=page as_table=as_table/> });
            view! { <div class="space-y-6">{each.collect_view()}</div> }.erased()
        }
        (true, true) => {
            let (none, hint) = if any.get() {
                (words.none_match, words.none_match_hint)
            } else {
                (t().workers.none_match, t().workers.none_match_hint)
            };
            view! {
                <div class="panel">
                    <Empty glyph=Glyph::Search title=none text=hint>
                        <a class="btn btn-sm" href="/gpus">{words.show_all}</a>
                    </Empty>
                </div>
            }
            .erased()
        }
        (true, false) => view! {
            <div class="panel">
                <Empty glyph=Glyph::Gpu title=words.none_yet text=words.none_yet_hint>
                    <ButtonLink href="/admin/workers/new" label=t().workers.create glyph=Glyph::Plus/>
                </Empty>
            </div>
        }
        .erased(),
    };
    let filters = {
        let wish = wish.clone();
        move || view! { <Filters label=words.state filters=page.with(|page| states(&wish, page))/> }
    };
    let pager = {
        let wish = wish.clone();
        move || {
            let wish = wish.clone();
            let to = move |cursor: String| Wish { cursor: Some(cursor), ..wish.clone() }.href();
            let around = page.with(around);
            (around.total > 0).then(|| view! { <ListPager name=words.title around=around to=to/> })
        }
    };
    view! {
        {filters}
        <div class="asking"><Search wish=wish/></div>
        {body}
        {pager}
    }
    .erased()
}

/// The row of states.
fn states(wish: &Wish, page: &GpusPage) -> Vec<Filter> {
    let counts = page.counts;
    let filter = |state: Option<GpuState>| Filter {
        href: Wish { state, cursor: None, ..wish.clone() }.href(),
        label: state.map_or(t().common.all, |state| look(state).word),
        count: Some(state.map_or(counts.connected() + counts.not_connected, |state| counts.of(state))),
        current: wish.state == state,
    };
    std::iter::once(None).chain(GpuState::ALL.iter().copied().map(Some)).map(filter).collect()
}

fn around(page: &GpusPage) -> Around {
    let (previous, next) = (page.previous_cursor.clone(), page.next_cursor.clone());
    Around { before: page.before, shown: page.workers.len() as u64, total: page.total, previous, next }
}

/// One worker; only what changed of it is drawn again.
#[component]
fn Panel(id: WorkerId, page: RwSignal<GpusPage>, as_table: bool) -> impl IntoView {
    let (name_id, of) = (format!("gpus-{id}"), id.clone());
    let worker = Memo::new(move |_| page.with(|page| page.workers.iter().find(|worker| worker.id == id).cloned()));
    let shown = move || {
        let worker: WorkerView = worker.get()?;
        let rows = rows(&worker);
        let head = view! {
            <h2 id=name_id.clone() class="panel-head">
                <a class="row-link" href=format!("/admin/workers/{}", worker.id)>{worker.name.clone()}</a>
                <span class="panel-note flex flex-wrap gap-x-3"><WorkerBadge worker=worker/></span>
            </h2>
        };
        let body = if as_table {
            view! { <GpuRows rows=rows/> }.erased()
        } else {
            view! { <GpuTiles worker=of.clone() rows=rows/> }.erased()
        };
        Some(view! { <section class="panel" aria-labelledby=name_id.clone()>{head} {body}</section> }.erased())
    };
    view! { {shown} }.erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_wishes_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in
            [("state", "in_use"), ("q", "gpu:a100*"), ("view", "table"), ("range", "day"), ("cursor", "rack-7")]
        {
            params.insert(name, value.to_owned());
        }
        let wish = Wish::of(&params);
        assert_eq!(wish.href(), "/gpus?state=in_use&q=gpu%3Aa100%2A&view=table&range=day&cursor=rack-7");
        assert_eq!(wish.query().state, Some(GpuState::InUse));
        assert_eq!(Wish::of(&ParamsMap::new()).href(), "/gpus");
    }
}
