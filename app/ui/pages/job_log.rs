//! The whole log of a job, line by line.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use serde::{Deserialize, Serialize};

use super::not_found::no_such;
use super::{Skeleton, use_port};
use crate::domain::ids::Attempt;
use crate::domain::ids::JobId;
use crate::protocol::logs::LogLines;
use crate::protocol::problem::Problem;
use crate::protocol::queue::JobView;
use crate::protocol::topic::Topic;
use crate::ui::components::failure::Failure;
use crate::ui::components::log_bar::LogBar;
use crate::ui::components::log_reader::Reader;
use crate::ui::components::log_sheet::LogSheet;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::JobBadge;
use crate::ui::empty_state::{JobStage, Panel, empty_text};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::logs::search::{Found, Search};
use crate::ui::logs::store::Store;
use crate::ui::logs::wish::{Find, WINDOW, Wish};
use crate::ui::port::SharedPort;

/// What comes with the page.
#[derive(Clone, Serialize, Deserialize)]
struct First {
    job: JobView,
    /// None before the first attempt.
    lines: Option<LogLines>,
    found: Option<Found>,
}

async fn first(port: SharedPort, id: JobId, mut wish: Wish) -> Result<First, Problem> {
    let job = port.job(id.clone()).await?;
    let attempt = wish.attempt.map_or(job.attempt, Attempt);
    if job.attempt.0 == 0 {
        return Ok(First { job, lines: None, found: None });
    }
    let mut found = None;
    if !wish.find.q.is_empty() {
        let search = Search { port: port.clone(), job: id.clone(), attempt };
        let told = search.all(&wish).await.unwrap_or_else(|problem| {
            // What is wrong with what is looked for is said beside it, and the log is shown all the same.
            wish.find = Find::default();
            Found { problem: Some(problem.detail), is_all: true, ..Found::default() }
        });
        wish.lines = wish.lines.or(told.line.filter(|_| wish.from.is_none()).map(|line| (line, line)));
        found = Some(told);
    }
    let lines = port.job_log_lines(id, wish.window(attempt)).await?;
    Ok(First { job, lines: Some(lines), found })
}

/// A log's page.
#[component]
pub(crate) fn JobLogPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <Log id=id/> }.erased(),
        None => unknown(no_such()),
    }
}

#[component]
fn Log(id: JobId) -> impl IntoView {
    let port = use_port();
    let query = use_query_map();
    let wish = Memo::new(move |_| query.with(Wish::of));
    let attempt = Memo::new(move |_| wish.with(|wish| wish.attempt));
    // Within an attempt the page itself asks for what it needs.
    let page = Resource::new(move || attempt.get(), {
        let (port, id) = (port.clone(), id.clone());
        move |_| first(port.clone(), id.clone(), wish.get_untracked())
    });
    let shown = move || {
        let (port, id) = (port.clone(), id.clone());
        Suspend::new(async move {
            match page.await {
                Ok(first) => view! { <Shown first=first id=id wish=wish port=port/> }.erased(),
                Err(problem) => unknown(problem),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.erased()
}

/// What is shown if a log cannot be.
fn unknown(problem: Problem) -> AnyView {
    view! {
        <PageHead title=t().log.title above=("/jobs", t().jobs.title)/>
        <Failure problem=problem/>
    }
    .erased()
}

#[component]
fn Shown(first: First, id: JobId, wish: Memo<Wish>, port: SharedPort) -> impl IntoView {
    let words = t();
    let First { job, lines, found } = first;
    let (name, newest) = (job.config_name.clone(), job.attempt);
    let job = refreshed(job, &[Topic::Job(id.clone())], {
        let (port, id) = (port.clone(), id.clone());
        move || port.job(id.clone())
    });
    let attempt = lines.as_ref().map_or(newest, |lines| lines.attempt);
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let empty = Signal::derive(move || job.with(|job| empty_text(Panel::Log, JobStage::of_attempt(job, attempt))));
    let status = Memo::new(move |_| job.with(|job| job.status));
    let body = match lines {
        None => view! { <div class="panel"><p class="panel-empty">{empty}</p></div> }.erased(),
        Some(lines) => {
            let search = Search { port, job: id.clone(), attempt };
            let sent = (lines.from - 1, lines.from - 1 + lines.lines.len() as u64);
            let mut store = Store::default();
            store.put(lines);
            let reader = Reader::new(search, wish, store, sent, found);
            view! {
                <section class="panel log-panel" aria-label=words.log.title>
                    <LogBar reader=reader/>
                    <LogSheet reader=reader empty=empty/>
                </section>
                <Pages reader=reader sent=sent/>
            }
            .erased()
        }
    };
    view! {
        <PageHead title=words.logs.title.of(&name) above=(format!("/jobs/{id}"), words.jobs.job)>
            {move || view! { <JobBadge status=status.get()/> }}
        </PageHead>
        {move || view! { <Attempts id=id.clone() shown=attempt newest=newest.get() wish=wish/> }}
        {body}
    }
    .erased()
}

/// The attempts, where there was more than one.
#[component]
fn Attempts(id: JobId, shown: Attempt, newest: Attempt, wish: Memo<Wish>) -> impl IntoView {
    let words = t();
    let link = move |number: u32| {
        // What is looked for and how it is shown stay; lines of another attempt are others.
        let wish = wish.with_untracked(|wish| Wish { attempt: Some(number), lines: None, from: None, ..wish.clone() });
        let current = (number == shown.0).then_some("true");
        view! { <li><a class="filter" href=wish.href(&id) aria-current=current>{words.log.attempt.of(number)}</a></li> }
    };
    (newest.0 > 1)
        .then(|| view! { <nav aria-label=words.logs.attempts><ul class="filters">{(1..=newest.0).map(link).collect_view()}</ul></nav> })
        .erased()
}

/// The way through a log for those who have no scripts.
#[component]
fn Pages(reader: Reader, sent: (u64, u64)) -> impl IntoView {
    let words = t();
    let (first, end) = sent;
    let total = reader.store.with_untracked(|store| store.total);
    let page = u64::from(WINDOW);
    let link = move |label: &'static str, from: Option<u64>| {
        let wish = reader.wish.with_untracked(|wish| Wish { lines: None, from, ..wish.clone() });
        let href = reader.log.with_value(|log| wish.href(&log.job));
        view! { <a class="btn btn-sm" href=href>{label}</a> }
    };
    let shown = words.logs.shown.with(&[&words.whole(first + 1), &words.whole(end), &words.whole(total)]);
    (total > end - first)
        .then(|| {
            view! {
                <nav class="no-js-only" aria-label=words.log.title>
                    <div class="pager">
                        <span class="text-muted">{shown}</span>
                        {(first > 0).then(|| view! { {link(words.logs.first, Some(1))} {link(words.logs.earlier, Some(first.saturating_sub(page) + 1))} })}
                        {(end < total).then(|| view! { {link(words.logs.later, Some(end + 1))} {link(words.logs.last, Some(total.saturating_sub(page) + 1))} })}
                    </div>
                </nav>
            }
        })
        .erased()
}
