//! The entire log of a job, line by line.

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};
use serde::{Deserialize, Serialize};

use super::job::{JobTab, JobTabs, TabContents};
use super::not_found::not_found_problem;
use crate::domain::ids::AttemptNumber;
use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::protocol::logs::LogLines;
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::log_reader::LogReader;
use crate::ui::components::log_toolbar::LogToolbar;
use crate::ui::components::log_viewer::LogViewer;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::rank_log::RankLog;
use crate::ui::components::skeleton::Skeleton;
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

async fn fetch_page(backend: SharedBackend, id: JobId, mut view_state: LogViewState) -> Result<LogPageData, Problem> {
    let job = backend.job(id.clone()).await?;
    let attempt = view_state.attempt.map_or(job.attempt, AttemptNumber);
    if job.attempt.0 == 0 {
        return Ok(LogPageData { job, lines: None, found: None });
    }
    if view_state.rank.is_some() {
        let lines = backend.job_log_lines(id, view_state.rank_query(attempt)).await?;
        return Ok(LogPageData { job, lines: Some(lines), found: None });
    }
    let mut found = None;
    if !view_state.search.q.is_empty() {
        let search = AttemptLog { backend: backend.clone(), job: id.clone(), attempt };
        let search_state = search.search_all(&view_state).await.unwrap_or_else(|problem| {
            // The search error is shown next to the search field, and the log is shown anyway.
            view_state.search = LogSearchTerms::default();
            LogSearchState { problem: Some(problem.detail), is_all: true, ..LogSearchState::default() }
        });
        view_state.selected_lines = view_state
            .selected_lines
            .or(search_state.line.filter(|_| view_state.first_line.is_none()).map(|line| (line, line)));
        found = Some(search_state);
    }
    let lines = backend.job_log_lines(id, view_state.window_query(attempt)).await?;
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
    let backend = use_backend();
    let query = use_query_map();
    let view_state = Memo::new(move |_| query.with(LogViewState::from_params));
    let shown_part = Memo::new(move |_| view_state.with(shown_part));
    // Within an attempt, the viewer itself requests what it needs.
    let page = Resource::new(move || shown_part.get(), {
        let (backend, id) = (backend.clone(), id.clone());
        move |_| fetch_page(backend.clone(), id.clone(), view_state.get_untracked())
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend, id) = (scope.clone(), backend.clone(), id.clone());
        Suspend::new(async move {
            match page.await {
                Ok(first) => scope.render(|| {
                    view! { <LogContent first=first id=id view_state=view_state backend=backend/> }.into_erased()
                }),
                Err(problem) => log_error(problem),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

/// The part of the address with which the page is another one. The lines of a rank are shown in parts.
fn shown_part(view_state: &LogViewState) -> LogViewState {
    match view_state.rank {
        Some(_) => view_state.clone(),
        None => LogViewState { attempt: view_state.attempt, ..LogViewState::default() },
    }
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
fn LogContent(first: LogPageData, id: JobId, view_state: Memo<LogViewState>, backend: SharedBackend) -> impl IntoView {
    let words = t();
    let LogPageData { job, lines, found } = first;
    let (name, newest) = (job.config_name.clone(), job.attempt);
    let job = live_signal(job, &[Topic::Job(id.clone())], {
        let (backend, id) = (backend.clone(), id.clone());
        move || backend.job(id.clone())
    });
    let attempt = lines.as_ref().map_or(newest, |lines| lines.attempt);
    let newest = Memo::new(move |_| job.with(|job| job.attempt));
    let empty = Signal::derive(move || job.with(|job| empty_text(JobPanel::Log, JobStage::for_attempt(job, attempt))));
    let status = Memo::new(move |_| job.with(|job| job.status));
    let contents = Memo::new(move |_| job.with(|job| TabContents::new(job, None)));
    let tabs_id = id.clone();
    let shown_attempt = move |job: &JobView| {
        job.attempts.as_ref().and_then(|attempts| attempts.iter().find(|view| view.attempt == attempt)).cloned()
    };
    let error_line = Memo::new(move |_| job.with(|job| shown_attempt(job).and_then(|attempt| attempt.error_line)));
    let ranks = Memo::new(move |_| job.with(|job| shown_attempt(job).map(|attempt| attempt.ranks).unwrap_or_default()));
    let body = match lines {
        None => view! { <div class="panel"><p class="panel-empty">{empty}</p></div> }.into_erased(),
        Some(lines) if view_state.with_untracked(|view_state| view_state.rank.is_some()) => {
            view! { <RankLog job=id.clone() lines=lines ranks=ranks view_state=view_state/> }.into_erased()
        }
        Some(lines) => {
            let search = AttemptLog { backend, job: id.clone(), attempt };
            let rendered_lines = (lines.from - 1, lines.from - 1 + lines.lines.len() as u64);
            let mut cache = LineCache::default();
            cache.insert(lines);
            let reader = LogReader::new(search, view_state, cache, rendered_lines, found, error_line);
            view! {
                <section class="panel log-panel" aria-label=words.log.title>
                    <LogToolbar reader=reader ranks=ranks/>
                    <LogViewer reader=reader empty=empty/>
                </section>
                <LogPager reader=reader rendered_lines=rendered_lines/>
            }
            .into_erased()
        }
    };
    view! {
        <PageHeader title=words.logs.title.of(&name) above=(format!("/jobs/{id}"), words.jobs.job)>
            {move || view! { <JobBadge status=status.get()/> }}
        </PageHeader>
        {move || view! { <JobTabs id=tabs_id.clone() tab=JobTab::Log contents=contents.get()/> }}
        {move || view! { <AttemptLinks id=id.clone() shown=attempt newest=newest.get() view_state=view_state/> }}
        {body}
    }
    .into_erased()
}

/// Links to the attempts, if there are several.
#[component]
fn AttemptLinks(
    id: JobId,
    shown: AttemptNumber,
    newest: AttemptNumber,
    view_state: Memo<LogViewState>,
) -> impl IntoView {
    let words = t();
    let link = move |number: u32| {
        // Search and display options stay; line numbers are specific to an attempt.
        let view_state = view_state.with_untracked(|view_state| LogViewState {
            attempt: Some(number),
            selected_lines: None,
            first_line: None,
            before: None,
            ..view_state.clone()
        });
        let current = (number == shown.0).then_some("true");
        view! { <li><a class="filter" href=view_state.href(&id) aria-current=current>{words.log.attempt.of(number)}</a></li> }
    };
    (newest.0 > 1)
        .then(|| view! { <nav aria-label=words.logs.attempts><ul class="filters">{(1..=newest.0).map(link).collect_view()}</ul></nav> })
        .into_erased()
}

/// Links to other parts of the log, for users without JavaScript.
#[component]
fn LogPager(reader: LogReader, rendered_lines: (u64, u64)) -> impl IntoView {
    let words = t();
    let (first, end) = rendered_lines;
    let total = reader.cache.with_untracked(|cache| cache.total);
    let page = u64::from(INITIAL_LINES);
    let link = move |label: &'static str, first_line: Option<u64>| {
        let view_state = reader.view_state.with_untracked(|view_state| LogViewState {
            selected_lines: None,
            first_line,
            ..view_state.clone()
        });
        let href = reader.log.with_value(|log| view_state.href(&log.job));
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
