//! The attempts of a worker, and how many of the recent ones succeeded.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::header::{WorkerHeader, worker_problem_page};
use super::tabs::WorkerTab;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;
use crate::protocol::jobs::JobsQuery;
use crate::protocol::workers::WorkerView;
use crate::protocol::workers::history::{PageQuery, WorkerAttempt, WorkerAttemptStats, WorkerAttempts};
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::components::action::MoreLink;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::failure_reason::FailureReasonLine;
use crate::ui::components::pager::Pager;
use crate::ui::components::stat_tile::StatTile;
use crate::ui::components::status::{StatusBadge, outcome_style};
use crate::ui::components::time::{Elapsed, RelativeTime};
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::losses::loss_sentence;
use crate::ui::page_query::{from_params, jobs_url, query_string};
use crate::ui::pages::server_rendered_page::server_rendered_page;

/// Number of attempts or events per page.
const PAGE_SIZE: u32 = 50;
const DAY_MS: i64 = 86_400_000;

/// The page of a list that the address selects.
pub(super) fn page_query_from_url() -> PageQuery {
    PageQuery { limit: Some(PAGE_SIZE), ..use_query_map().with_untracked(from_params) }
}

/// The addresses of the first page of a list, unless it is shown, and of the next page with older entries.
pub(super) fn page_links(
    id: &WorkerId,
    tab: WorkerTab,
    query: &PageQuery,
    next: Option<String>,
) -> [Option<String>; 2] {
    let tab_url = tab.href(id);
    let older =
        next.map(|cursor| format!("{tab_url}{}", query_string(&PageQuery { limit: None, cursor: Some(cursor) })));
    [query.cursor.is_some().then_some(tab_url), older]
}

#[component]
pub(crate) fn WorkerJobsPage() -> impl IntoView {
    let (backend, page_backend, query) = (use_backend(), use_page_backend(), page_query_from_url());
    server_rendered_page(
        move |id: WorkerId| {
            let (backend, page_backend, query) = (backend.clone(), page_backend.clone(), query.clone());
            async move {
                Ok((backend.worker(id.clone()).await?, page_backend.worker_attempts(id, query.clone()).await?, query))
            }
        },
        |(worker, page, query)| view! { <AttemptHistory worker=worker page=page query=query/> }.into_erased(),
        worker_problem_page,
    )
}

#[component]
fn AttemptHistory(worker: WorkerView, page: WorkerAttempts, query: PageQuery) -> impl IntoView {
    let words = &t().server_pages().worker;
    let [newest, older] = page_links(&worker.id, WorkerTab::Jobs, &query, page.next_cursor);
    let all = jobs_url(&JobsQuery { worker: Some(worker.id.clone()), ..JobsQuery::default() });
    let list = if page.attempts.is_empty() {
        view! { <EmptyPanel glyph=Glyph::Jobs title=words.no_attempts text=words.no_attempts_hint/> }.into_erased()
    } else {
        view! { <AttemptTable attempts=page.attempts/> }.into_erased()
    };
    view! {
        <div data-part="page">
            <WorkerHeader worker=RwSignal::new(worker) tab=Signal::stored(WorkerTab::Jobs)/>
            <WorkerFigures record=page.record now=page.server_time/>
            <section class="panel" aria-labelledby="attempts">
                <h2 id="attempts" class="panel-head">{words.attempts}<span class="panel-note">{words.newest_first}</span><MoreLink href=all label=t().overview.all_jobs rel="external"/></h2>
                {list}
            </section>
            <Pager label=words.attempts first=newest next=older/>
        </div>
    }
    .into_erased()
}

#[component]
fn WorkerFigures(record: WorkerAttemptStats, now: Timestamp) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().worker;
    let rate = record.success_percent.map_or_else(|| "–".to_owned(), |rate| language.format_percent(rate));
    // The statistics cover at most a month; less than a day is shown as one day.
    let days = ((now - record.since).0 / DAY_MS).max(1).unsigned_abs();
    let counts = [record.completed, record.failed, record.lost].map(|number| language.format_integer(number));
    let outcomes = words.outcomes.with(&[&counts[0], &counts[1], &counts[2]]);
    view! {
        <ul class="tiles tiles-figures">
            <StatTile name=words.attempts value=language.format_integer(record.attempts) note=words.recent.of(days)/>
            <StatTile name=words.success value=rate note=outcomes/>
            <StatTile name=words.fast_failures value=language.format_integer(record.fast_failures) note=words.fast_failures_hint/>
        </ul>
    }
    .into_erased()
}

#[component]
fn AttemptTable(attempts: Vec<WorkerAttempt>) -> impl IntoView {
    let words = t();
    let rows = attempts.into_iter().map(|attempt| view! { <AttemptHistoryRow attempt=attempt/> });
    view! {
        <table class="data is-fixed">
            <caption class="sr-only">{words.server_pages().worker.attempts}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.jobs.job}</th>
                    <th scope="col" class="w-2/5 md:w-1/3">{words.job.outcome}</th>
                    <th scope="col" class="num w-20 max-lg:hidden">{words.worker.gpus}</th>
                    <th scope="col" class="w-36 max-lg:hidden">{words.status.offered}</th>
                    <th scope="col" class="num w-28">{words.job.elapsed}</th>
                </tr>
            </thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_erased()
}

#[component]
fn AttemptHistoryRow(attempt: WorkerAttempt) -> impl IntoView {
    let words = t();
    let job = attempt.job_id.as_str();
    let href = format!("/jobs/{job}/log?attempt={}", attempt.attempt);
    let attempt_label = format!("{} · {}", words.log.attempt.of(attempt.attempt.0), short_id(job));
    let exit = attempt.exit_code.filter(|code| *code != 0).map(|code| format!("{} {code}", words.job.exit_code));
    let until = attempt.ended_at;
    let error = attempt.error.map(|error| loss_sentence(attempt.loss_code, &error));
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=href rel="external" title=attempt.config_name.clone()>{attempt.config_name.clone()}</a>
                <span class="row-sub">{attempt_label}<span class="lg:hidden">" · "<RelativeTime at=attempt.offered_at/></span></span>
            </th>
            <td>
                <StatusBadge style=outcome_style(&words.status, attempt.outcome.as_deref())/>
                {error.or(exit).map(|reason| view! { <FailureReasonLine error=reason/> })}
            </td>
            <td class="num max-lg:hidden">{words.format_integer(attempt.gpus.into())}</td>
            <td class="text-muted max-lg:hidden"><RelativeTime at=attempt.offered_at/></td>
            <td class="num text-muted">{attempt.started_at.map(|from| view! { <Elapsed from=from until=until/> })}</td>
        </tr>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_pages_have_urls() {
        let id = WorkerId::parse("w_1").expect("an id");
        let query = |cursor: Option<&str>| PageQuery { limit: None, cursor: cursor.map(str::to_owned) };
        assert_eq!(page_links(&id, WorkerTab::Jobs, &query(None), None), [None, None]);
        let [newest, older] = page_links(&id, WorkerTab::Events, &query(Some("5.1.c")), Some("4.1.j_&".to_owned()));
        assert_eq!(newest.as_deref(), Some("/admin/workers/w_1/events"));
        assert_eq!(older.as_deref(), Some("/admin/workers/w_1/events?cursor=4.1.j_%26"));
    }
}
