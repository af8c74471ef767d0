//! Every GPU of the fleet, by worker and by the value of a label: as tiles, as tables, or as squares.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, asked, use_port};
use crate::domain::ids::WorkerId;
use crate::protocol::gpus::{GpuGroup, GpusPage, GpusQuery};
use crate::protocol::history::Range;
use crate::protocol::status::GpuState;
use crate::protocol::topic::Topic;
use crate::protocol::workers::WorkerView;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::gpu_squares::{GpuSquares, Legend};
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
/// As squares, of so many.
const DENSE_PAGE: u32 = 200;

/// As what GPUs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Form {
    #[default]
    Tiles,
    Table,
    Squares,
}

/// What the address asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Wish {
    state: Option<GpuState>,
    q: Option<String>,
    cursor: Option<String>,
    form: Form,
    group: Option<String>,
    lately: Range,
}

impl Wish {
    fn of(params: &ParamsMap) -> Self {
        let state = params.get("state").and_then(|word| GpuState::parse(&word));
        let is = |key: &str, word: &str| params.get_str(key) == Some(word);
        let lately = if is("range", "day") { Range::Day } else { Range::Hour };
        let (q, cursor) = (asked(params, "q"), asked(params, "cursor"));
        let form = match params.get_str("view") {
            Some("table") => Form::Table,
            Some("squares") => Form::Squares,
            _ => Form::Tiles,
        };
        Self { state, q, cursor, form, group: asked(params, "group"), lately }
    }

    fn query(&self) -> GpusQuery {
        let Self { state, q, cursor, form, group, lately } = self.clone();
        let (lately, limit) = if form == Form::Squares { (None, DENSE_PAGE) } else { (Some(lately), PAGE) };
        GpusQuery { state, q, group, lately, limit: Some(limit), cursor }
    }

    /// Its words in an address, but for the question and the place.
    fn words(&self) -> [(&'static str, Option<String>); 4] {
        let view = match self.form {
            Form::Tiles => None,
            Form::Table => Some("table"),
            Form::Squares => Some("squares"),
        };
        [
            ("state", self.state.map(|state| state.as_str().to_owned())),
            ("view", view.map(str::to_owned)),
            ("group", self.group.clone()),
            ("range", (self.lately == Range::Day).then(|| "day".to_owned())),
        ]
    }

    fn href(&self) -> String {
        let [state, view, group, range] = self.words();
        let (q, cursor) = (("q", self.q.clone()), ("cursor", self.cursor.clone()));
        format!("/gpus{}", query_string(&[state, q, view, group, range, cursor]))
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
    let view = |label, form| {
        let href = Wish { form, ..wish.clone() }.href();
        Filter { href, label, count: None, current: wish.form == form }
    };
    let range = |label, lately| {
        let href = Wish { lately, ..wish.clone() }.href();
        Filter { href, label, count: None, current: wish.lately == lately }
    };
    let forms = vec![
        view(words.as_tiles, Form::Tiles),
        view(words.as_table, Form::Table),
        view(words.as_squares, Form::Squares),
    ];
    // A square has no room for a line.
    let ranges = (wish.form != Form::Squares).then(|| {
        let filters = vec![range(ranges.hour, Range::Hour), range(ranges.day, Range::Day)];
        view! { <Filters label=ranges.range filters=filters/> }
    });
    view! {
        {ranges}
        <Filters label=words.view filters=forms/>
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
    let parts = Memo::new(move |_| page.with(parts));
    let (form, key) = (wish.form, wish.group.clone());
    let is_narrowed = wish.state.is_some() || wish.q.is_some() || wish.cursor.is_some();
    // A question is one for workers: nobody answers to it, or none of theirs is in the state.
    let any = Memo::new(move |_| page.with(|page| page.counts.connected() + page.counts.not_connected > 0));
    let body = move || match (parts.with(|parts| parts.iter().all(Vec::is_empty)), is_narrowed) {
        (false, _) => {
            let part = |(place, ids)| view! { <Part place=place ids=ids key=key.clone() page=page form=form/> };
            let each = parts.get().into_iter().enumerate().map(part);
            view! {
                {(form == Form::Squares).then(|| view! { <Legend/> })}
                <div class="space-y-6">{each.collect_view()}</div>
            }
            .erased()
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
    let by = {
        let wish = wish.clone();
        let keys = Memo::new(move |_| page.with(|page| page.label_keys.clone()));
        move || view! { <By wish=wish.clone() keys=keys.get()/> }
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
        <div class="gpu-asking"><Search wish=wish.clone()/>{by}</div>
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

/// The workers of each group on the page; without groups, all of them.
fn parts(page: &GpusPage) -> Vec<Vec<WorkerId>> {
    let mut ids = page.workers.iter().map(|worker| worker.id.clone());
    if page.groups.is_empty() {
        return vec![ids.collect()];
    }
    let some = |group: &GpuGroup| ids.by_ref().take(usize::try_from(group.shown).unwrap_or(usize::MAX)).collect();
    page.groups.iter().map(some).collect()
}

/// By which label workers are grouped: a form, as there may be many, that works without scripts.
#[component]
fn By(wish: Wish, keys: Vec<String>) -> impl IntoView {
    let words = &t().gpus;
    let keeps = [("q", wish.q.clone())].into_iter().chain(wish.words()).filter(|(name, _)| *name != "group");
    let keeps = keeps
        .filter_map(|(name, value)| value.map(|value| view! { <input type="hidden" name=name value=value/> }))
        .collect_view();
    let option = |key: String| {
        let value = format!("label.{key}");
        view! { <option value=value.clone() selected=wish.group.as_ref() == Some(&value)>{key}</option> }
    };
    let options = keys.into_iter().map(option).collect_view();
    let any = !options.is_empty();
    any.then(|| {
        view! {
            <form method="get" action="/gpus" class="gpu-by">
                {keeps}
                <label for="group">{words.group_by}</label>
                <select class="select select-sm" id="group" name="group">
                    <option value="">{t().jobs.worker}</option>
                    {options}
                </select>
                <button class="btn btn-sm">{words.apply}</button>
            </form>
        }
    })
    .erased()
}

/// The workers of one group, under its name and how its GPUs stand; without groups there is no head.
#[component]
fn Part(place: usize, ids: Vec<WorkerId>, key: Option<String>, page: RwSignal<GpusPage>, form: Form) -> impl IntoView {
    let grouped = key.is_some();
    let head = key.map(|key| {
        let group = Memo::new(move |_| page.with(|page| page.groups.get(place).cloned().unwrap_or_default()));
        move || {
            let (name, note) = head(key.trim_start_matches("label."), &group.get());
            view! { <h2 class="gpu-group"><bdi class="wrap-anywhere">{name}</bdi><span>{note}</span></h2> }
        }
    });
    let each = ids.into_iter().map(|id| view! { <Panel id=id page=page form=form grouped=grouped/> }).collect_view();
    let body = match form {
        Form::Squares => view! { <div class="panel"><div class="gpu-hosts">{each}</div></div> }.erased(),
        Form::Tiles | Form::Table => view! { <div class="space-y-6">{each}</div> }.erased(),
    };
    view! { <div>{head} {body}</div> }.erased()
}

/// What a group is called, and what there is of it.
fn head(key: &str, group: &GpuGroup) -> (String, String) {
    let words = &t().gpus;
    let name = group.value.as_ref().map_or_else(|| words.no_value.of(key), |value| format!("{key} = {value}"));
    let states = GpuState::ALL.iter().filter(|state| group.counts.of(**state) > 0);
    let states = states.map(|state| format!("{} {}", look(*state).word, t().whole(group.counts.of(*state))));
    let here = (group.shown < group.total).then(|| words.here.of(t().whole(group.shown)));
    let note = std::iter::once(t().workers.total.of(group.total)).chain(here).chain(states);
    (name, note.collect::<Vec<_>>().join(" · "))
}

/// One worker; only what changed of it is drawn again.
#[component]
fn Panel(id: WorkerId, page: RwSignal<GpusPage>, form: Form, grouped: bool) -> impl IntoView {
    let (name_id, of) = (format!("gpus-{id}"), id.clone());
    let worker = Memo::new(move |_| page.with(|page| page.workers.iter().find(|worker| worker.id == id).cloned()));
    let shown = move || {
        let worker: WorkerView = worker.get()?;
        let (rows, name) = (rows(&worker), worker.name.clone());
        let body = match form {
            Form::Table => view! { <GpuRows rows=rows/> }.erased(),
            Form::Tiles => view! { <GpuTiles worker=of.clone() rows=rows/> }.erased(),
            Form::Squares => view! { <GpuSquares worker=of.clone() name=name.clone() rows=rows/> }.erased(),
        };
        let (panel, head) = if form == Form::Squares { ("", "gpu-host-name") } else { ("panel", "panel-head") };
        let badge = (form != Form::Squares)
            .then(|| view! { <span class="panel-note flex flex-wrap gap-x-3"><WorkerBadge worker=worker/></span> });
        let title = view! { <a class="row-link" href=format!("/admin/workers/{of}")>{name}</a>{badge} };
        // Below the name of a group.
        let head = if grouped {
            view! { <h3 id=name_id.clone() class=head>{title}</h3> }.erased()
        } else {
            view! { <h2 id=name_id.clone() class=head>{title}</h2> }.erased()
        };
        Some(view! { <section class=panel aria-labelledby=name_id.clone()>{head}{body}</section> }.erased())
    };
    view! { {shown} }.erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_wishes_are_inverse() {
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
        let wish = Wish::of(&params);
        assert_eq!(
            wish.href(),
            "/gpus?state=in_use&q=gpu%3Aa100%2A&view=table&group=label.team&range=day&cursor=rack-7"
        );
        assert_eq!(wish.query().state, Some(GpuState::InUse));
        assert_eq!(Wish::of(&ParamsMap::new()).href(), "/gpus");
    }
}
