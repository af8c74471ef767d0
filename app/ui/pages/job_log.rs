//! The entire log of a job, line by line.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use serde::{Deserialize, Serialize};

use super::not_found::not_found_problem;
use super::{Skeleton, use_backend};
use crate::domain::ids::AttemptNumber;
use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::protocol::logs::LogLines;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;
use crate::ui::backend::SharedBackend;
use crate::ui::components::log_reader::LogReader;
use crate::ui::components::log_toolbar::LogToolbar;
use crate::ui::components::log_viewer::LogViewer;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::status::JobBadge;
use crate::ui::empty_state::{JobPanel, JobStage, empty_text};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::logs::line_cache::LineCache;
use crate::ui::logs::search::{AttemptLog, LogSearchState};
use crate::ui::logs::view_state::{INITIAL_LINES, LogSearchTerms, LogViewState};
use crate::ui::view_scope::ViewScope;

/// The data of the page.
#[derive(Clone, Serialize, Deserialize)]
struct LogPageData {
    job: JobView,
    /// None before the first attempt.
    lines: Option<LogLines>,
    found: Option<LogSearchState>,
}

async fn fetch_page(port: SharedBackend, id: JobId, mut wish: LogViewState) -> Result<LogPageData, Problem> {
    let job = port.job(id.clone()).await?;
    let attempt = wish.attempt.map_or(job.attempt, AttemptNumber);
    if job.attempt.0 == 0 {
        return Ok(LogPageData { job, lines: None, found: None });
    }
    let mut found = None;
    if !wish.search.q.is_empty() {
        let search = AttemptLog { backend: port.clone(), job: id.clone(), attempt };
        let search_state = search.search_all(&wish).await.unwrap_or_else(|problem| {
            // The search error is shown next to the search field, and the log is shown anyway.
            wish.search = LogSearchTerms::default();
            LogSearchState { problem: Some(problem.detail), is_all: true, ..LogSearchState::default() }
        });
        wish.selected_lines =
            wish.selected_lines.or(search_state.line.filter(|_| wish.first_line.is_none()).map(|line| (line, line)));
        found = Some(search_state);
    }
    let lines = port.job_log_lines(id, wish.window_query(attempt)).await?;
    Ok(LogPageData { job, lines: Some(lines), found })
}

#[component]
pub(crate) fn JobLogPage() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).and_then(|id| JobId::parse(&id).ok()));
    move || match id.get() {
        Some(id) => view! { <LogLoader id=id/> }.into_erased(),
        None => log_error(not_found_problem()),
    }
}

#[component]
fn LogLoader(id: JobId) -> impl IntoView {
    let port = use_backend();
    let query = use_query_map();
    let wish = Memo::new(move |_| query.with(LogViewState::from_params));
    let attempt = Memo::new(move |_| wish.with(|wish| wish.attempt));
    // Within an attempt, the viewer itself requests what it needs.
    let page = Resource::new(move || attempt.get(), {
        let (port, id) = (port.clone(), id.clone());
        move |_| fetch_page(port.clone(), id.clone(), wish.get_untracked())
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, port, id) = (scope.clone(), port.clone(), id.clone());
        Suspend::new(async move {
            match page.await {
                Ok(first) => {
                    scope.render(|| view! { <LogContent first=first id=id wish=wish port=port/> }.into_erased())
                }
                Err(problem) => log_error(problem),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

/// Shown if a log cannot be loaded.
fn log_error(problem: Problem) -> AnyView {
    view! {
        <PageHeader title=t().log.title above=("/jobs", t().jobs.title)/>
        <ProblemPanel problem=problem/>
    }
    .into_erased()
}

#[component]
fn LogContent(first: LogPageData, id: JobId, wish: Memo<LogViewState>, port: SharedBackend) -> impl IntoView {
    let words = t();
    let LogPageData { job, lines, found } = first;
    let (name, newest) = (job.config_name.clone(), job.attempt);
    let job = live_signal(job, &[Topic::Job(id.clone())], {
        let (port, id) = (port.clone(), id.clone());
        move || port.job(id.clone())
    });
    let attempt = lines.as_ref().map_or(newest, |lines| lines.attempt);
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let empty = Signal::derive(move || job.with(|job| empty_text(JobPanel::Log, JobStage::for_attempt(job, attempt))));
    let status = Memo::new(move |_| job.with(|job| job.status));
    let body = match lines {
        None => view! { <div class="panel"><p class="panel-empty">{empty}</p></div> }.into_erased(),
        Some(lines) => {
            let search = AttemptLog { backend: port, job: id.clone(), attempt };
            let sent = (lines.from - 1, lines.from - 1 + lines.lines.len() as u64);
            let mut store = LineCache::default();
            store.insert(lines);
            let reader = LogReader::new(search, wish, store, sent, found);
            view! {
                <section class="panel log-panel" aria-label=words.log.title>
                    <LogToolbar reader=reader/>
                    <LogViewer reader=reader empty=empty/>
                </section>
                <LogPager reader=reader sent=sent/>
            }
            .into_erased()
        }
    };
    view! {
        <PageHeader title=words.logs.title.of(&name) above=(format!("/jobs/{id}"), words.jobs.job)>
            {move || view! { <JobBadge status=status.get()/> }}
        </PageHeader>
        {move || view! { <AttemptLinks id=id.clone() shown=attempt newest=newest.get() wish=wish/> }}
        {body}
    }
    .into_erased()
}

/// Links to the attempts, if there are several.
#[component]
fn AttemptLinks(id: JobId, shown: AttemptNumber, newest: AttemptNumber, wish: Memo<LogViewState>) -> impl IntoView {
    let words = t();
    let link = move |number: u32| {
        // Search and display options stay; line numbers are specific to an attempt.
        let wish = wish.with_untracked(|wish| LogViewState {
            attempt: Some(number),
            selected_lines: None,
            first_line: None,
            ..wish.clone()
        });
        let current = (number == shown.0).then_some("true");
        view! { <li><a class="filter" href=wish.href(&id) aria-current=current>{words.log.attempt.of(number)}</a></li> }
    };
    (newest.0 > 1)
        .then(|| view! { <nav aria-label=words.logs.attempts><ul class="filters">{(1..=newest.0).map(link).collect_view()}</ul></nav> })
        .into_erased()
}

/// Links to other parts of the log, for users without JavaScript.
#[component]
fn LogPager(reader: LogReader, sent: (u64, u64)) -> impl IntoView {
    let words = t();
    let (first, end) = sent;
    let total = reader.cache.with_untracked(|store| store.total);
    let page = u64::from(INITIAL_LINES);
    let link = move |label: &'static str, first_line: Option<u64>| {
        let wish =
            reader.view_state.with_untracked(|wish| LogViewState { selected_lines: None, first_line, ..wish.clone() });
        let href = reader.log.with_value(|log| wish.href(&log.job));
        view! { <a class="btn btn-sm" href=href>{label}</a> }
    };
    let shown = words.logs.shown.with(&[
        &words.format_integer(first + 1),
        &words.format_integer(end),
        &words.format_integer(total),
    ]);
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
        .into_erased()
}
