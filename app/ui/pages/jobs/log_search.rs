//! Searches the logs of many jobs. Each page is one request's share of the jobs, the newest first.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::domain::log_text::has_uppercase;
use crate::domain::search_terms::MAX_QUERY_CHARS;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::log_search::{JobLogMatches, JobLogsPage, JobLogsQuery};
use crate::protocol::logs::LogMatch;
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::components::action::MoreLink;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::pager::Pager;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::status::JobBadge;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::logs::view_state::{LogSearchTerms, LogViewState};
use crate::ui::page_query::{from_params, query_string};

#[component]
pub(crate) fn JobLogsSearchPage() -> impl IntoView {
    let (backend, words) = (use_page_backend(), t());
    let query = use_query_map().with_untracked(from_params::<JobLogsQuery>);
    let request = query.clone();
    let results = Resource::new(
        || (),
        move |()| {
            let response = (!request.q.is_empty()).then(|| backend.search_job_logs(request.clone()));
            async move {
                match response {
                    Some(response) => response.await.map(Some),
                    None => Ok(None),
                }
            }
        },
    );
    let form = search_form(&query);
    let shown = move || {
        let query = query.clone();
        Suspend::new(async move {
            match results.await {
                Ok(Some(page)) => results_view(&query, page),
                Ok(None) => ().into_erased(),
                Err(problem) => problem_view(problem),
            }
        })
    };
    view! {
        <PageHeader title=words.jobs.search_logs above=("/jobs", words.jobs.title) intro=words.server_pages().log_search.intro/>
        {form}
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// What the user has typed can be corrected.
fn problem_view(problem: Problem) -> AnyView {
    match problem.code.as_str() {
        "invalid_search" | "invalid_pattern" | "pattern_too_costly" | "out_of_range" => {
            view! { <ProblemNotice problem=problem/> }.into_erased()
        }
        _ => view! { <ProblemPanel problem=problem/> }.into_erased(),
    }
}

fn search_form(query: &JobLogsQuery) -> AnyView {
    let words = t();
    let log_search = &words.server_pages().log_search;
    let JobLogsQuery { q, jobs, config, regex, zone: _, cursor: _ } = query.clone();
    view! {
        <form method="get" action="/jobs/logs" role="search" class="log-search-form">
            {config.map(|config| view! { <input type="hidden" name="config" value=config/> })}
            <div class="field">
                <label for="q">{log_search.text}</label>
                <input class="input" id="q" name="q" type="search" maxlength="1000" required=true autocomplete="off" spellcheck="false" value=q autofocus=true/>
            </div>
            <div class="field">
                <label for="jobs">{log_search.jobs}<span class="field-optional">{words.common.optional}</span></label>
                <input class="input" id="jobs" name="jobs" type="search" maxlength=MAX_QUERY_CHARS.to_string() autocomplete="off" spellcheck="false" placeholder="config:flux* status:failed" value=jobs/>
            </div>
            <label class="log-search-regex"><input type="checkbox" class="checkbox checkbox-sm" name="regex" value="true" checked=regex/>{words.logs.regex}</label>
            <button class="btn btn-primary"><Icon glyph=Glyph::Search/>{words.logs.search_hint}</button>
        </form>
    }
    .into_erased()
}

fn results_view(query: &JobLogsQuery, page: JobLogsPage) -> AnyView {
    let words = t();
    let log_search = &words.server_pages().log_search;
    let JobLogsPage { jobs, searched, next_cursor } = page;
    let href =
        |cursor: Option<String>| format!("/jobs/logs{}", query_string(&JobLogsQuery { cursor, ..query.clone() }));
    let list = if jobs.is_empty() {
        let text = if next_cursor.is_some() { log_search.none_yet } else { log_search.none_hint };
        view! { <div class="panel"><EmptyPanel glyph=Glyph::Search title=words.logs.none text=text/></div> }
            .into_erased()
    } else {
        let terms = LogSearchTerms { q: query.q.clone(), regex: query.regex, case: has_uppercase(&query.q) };
        jobs.into_iter().map(|job| job_panel(job, &terms)).collect_view().into_erased()
    };
    view! {
        <div class="space-y-4">{list}</div>
        <Pager
            label=words.jobs.search_logs
            total=log_search.searched.of(u64::from(searched))
            first=query.cursor.is_some().then(|| href(None))
            next=next_cursor.map(|cursor| href(Some(cursor)))
            names=(log_search.newest, log_search.go_on)
        />
    }
    .into_erased()
}

/// The matching lines of a job, each with a link to it.
fn job_panel(found: JobLogMatches, terms: &LogSearchTerms) -> AnyView {
    let words = t();
    let JobLogMatches { job, matches, incomplete } = found;
    let id = job.job_id.clone();
    let in_log = LogViewState { attempt: Some(job.attempt.0), search: terms.clone(), ..LogViewState::default() };
    let rows = matches.into_iter().map(|LogMatch { line, text }| {
        view! {
            <div class="log-row">
                <a class="log-number" href=in_log.with_line(line).href(&id)>{line}</a>
                <span class="log-said">{text}</span>
            </div>
        }
    });
    let (rows, heading) = (rows.collect::<Vec<_>>(), format!("log-{id}"));
    let lines = (!rows.is_empty()).then(|| {
        view! { <div class="log is-excerpt is-wrapped" tabindex="0" role="group" aria-label=JobView::title(&job) dir="ltr">{rows}</div> }
    });
    let note = incomplete.then(|| view! { <p class="panel-empty">{words.server_pages().log_search.incomplete}</p> });
    view! {
        <section class="panel" aria-labelledby=heading>
            <h2 id=heading.clone() class="panel-head">
                <a class="row-link" href=format!("/jobs/{id}")>{job.title()}</a>
                <JobBadge status=job.status/>
                <span class="panel-note">{words.log.attempt.of(job.attempt.0)}</span>
                <MoreLink href=in_log.href(&id) label=words.logs.open/>
            </h2>
            {lines}
            {note}
        </section>
    }
    .into_erased()
}
