//! What a worker did: how its attempts ended of late, and each of them.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::frame::{WorkerFrame, unknown};
use super::tabs::Tab;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;
use crate::protocol::queue::JobsQuery;
use crate::protocol::worker_history::{PartQuery, WorkerAttempt, WorkerAttempts, WorkerRecord};
use crate::protocol::workers::WorkerView;
use crate::ui::components::action::MoreLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::figure::Figure;
use crate::ui::components::icon::Glyph;
use crate::ui::components::pager::Pager;
use crate::ui::components::reason::ReasonLine;
use crate::ui::components::status::{Status, outcome_look};
use crate::ui::components::time::{Elapsed, Moment};
use crate::ui::erase::Erase;
use crate::ui::format::{query_string, short_id};
use crate::ui::i18n::t;
use crate::ui::pages::jobs::jobs_address;
use crate::ui::pages::plain_page::plain_page;
use crate::ui::pages::{asked, use_desk, use_port};

/// How many a page shows.
const PAGE: u32 = 50;
const DAY: i64 = 86_400_000;

/// The part of a list that the address asks for.
pub(super) fn asked_part() -> PartQuery {
    let cursor = use_query_map().with_untracked(|params| asked(params, "cursor"));
    PartQuery { limit: Some(PAGE), cursor }
}

/// Where the newest part of a view's list is, unless it is shown, and the next older one.
pub(super) fn parts(id: &WorkerId, tab: Tab, here: &PartQuery, next: Option<String>) -> [Option<String>; 2] {
    let page = tab.href(id);
    let older = next.map(|cursor| format!("{page}{}", query_string(&[("cursor", Some(cursor))])));
    [here.cursor.is_some().then_some(page), older]
}

/// See the module.
#[component]
pub(crate) fn WorkerJobsPage() -> impl IntoView {
    let (port, desk, query) = (use_port(), use_desk(), asked_part());
    plain_page(
        move |id: WorkerId| {
            let (port, desk, query) = (port.clone(), desk.clone(), query.clone());
            async move { Ok((port.worker(id.clone()).await?, desk.worker_attempts(id, query.clone()).await?, query)) }
        },
        |(worker, page, query)| view! { <Shown worker=worker page=page query=query/> }.erased(),
        unknown,
    )
}

#[component]
fn Shown(worker: WorkerView, page: WorkerAttempts, query: PartQuery) -> impl IntoView {
    let words = &t().plain().worker;
    let [newest, older] = parts(&worker.id, Tab::Jobs, &query, page.next_cursor);
    let all = jobs_address(&JobsQuery { worker: Some(worker.id.clone()), ..JobsQuery::default() });
    let list = if page.attempts.is_empty() {
        view! { <Empty glyph=Glyph::Jobs title=words.no_attempts text=words.no_attempts_hint/> }.erased()
    } else {
        view! { <List attempts=page.attempts/> }.erased()
    };
    view! {
        <div data-part="page">
            <WorkerFrame worker=RwSignal::new(worker) tab=Signal::stored(Tab::Jobs)/>
            <Figures record=page.record now=page.server_time/>
            <section class="panel" aria-labelledby="attempts">
                <h2 id="attempts" class="panel-head">{words.attempts}<span class="panel-note">{words.newest_first}</span><MoreLink href=all label=t().overview.all_jobs rel="external"/></h2>
                {list}
            </section>
            <Pager label=words.attempts first=newest next=older/>
        </div>
    }
    .erased()
}

#[component]
fn Figures(record: WorkerRecord, now: Timestamp) -> impl IntoView {
    let language = t();
    let words = &language.plain().worker;
    let rate = record.success_percent.map_or_else(|| "–".to_owned(), |rate| language.percent(rate));
    // More than a month is never asked for, and less than a day is told as one.
    let days = ((now - record.since).0 / DAY).max(1).unsigned_abs();
    let judged = [record.completed, record.failed, record.lost].map(|number| language.whole(number));
    let of_what = words.ended_so.with(&[&judged[0], &judged[1], &judged[2]]);
    view! {
        <ul class="tiles tiles-figures">
            <Figure name=words.attempts value=language.whole(record.attempts) note=words.of_late.of(days)/>
            <Figure name=words.success value=rate note=of_what/>
            <Figure name=words.fast_failures value=language.whole(record.fast_failures) note=words.fast_failures_hint/>
        </ul>
    }
    .erased()
}

#[component]
fn List(attempts: Vec<WorkerAttempt>) -> impl IntoView {
    let words = t();
    let rows = attempts.into_iter().map(|attempt| view! { <Row attempt=attempt/> });
    view! {
        <table class="data">
            <caption class="sr-only">{words.plain().worker.attempts}</caption>
            <thead>
                <tr>
                    <th scope="col">{words.jobs.job}</th>
                    <th scope="col">{words.job.outcome}</th>
                    <th scope="col" class="num max-md:hidden">{words.worker.gpus}</th>
                    <th scope="col" class="max-md:hidden">{words.status.offered}</th>
                    <th scope="col" class="num">{words.job.elapsed}</th>
                </tr>
            </thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .erased()
}

#[component]
fn Row(attempt: WorkerAttempt) -> impl IntoView {
    let words = t();
    let job = attempt.job_id.as_str();
    let href = format!("/jobs/{job}?attempt={}#log", attempt.attempt);
    let which = format!("{} · {}", words.log.attempt.of(attempt.attempt.0), short_id(job));
    let exit = attempt.exit_code.filter(|code| *code != 0).map(|code| format!("{} {code}", words.job.exit_code));
    let until = attempt.ended_at;
    view! {
        <tr>
            <th scope="row">
                <a class="row-link" href=href rel="external">{attempt.config_name}</a>
                <span class="row-sub">{which}</span>
                <span class="row-sub md:hidden"><Moment at=attempt.offered_at/></span>
            </th>
            <td>
                <Status look=outcome_look(&words.status, attempt.outcome.as_deref())/>
                {attempt.error.or(exit).map(|why| view! { <ReasonLine error=why/> })}
            </td>
            <td class="num max-md:hidden">{words.whole(attempt.gpus.into())}</td>
            <td class="text-muted max-md:hidden"><Moment at=attempt.offered_at/></td>
            <td class="num text-muted">{attempt.started_at.map(|from| view! { <Elapsed from=from until=until/> })}</td>
        </tr>
    }
    .erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_list_have_addresses() {
        let id = WorkerId::parse("w_1").expect("an id");
        let here = |cursor: Option<&str>| PartQuery { limit: None, cursor: cursor.map(str::to_owned) };
        assert_eq!(parts(&id, Tab::Jobs, &here(None), None), [None, None]);
        let [newest, older] = parts(&id, Tab::Events, &here(Some("5.1.c")), Some("4.1.j_&".to_owned()));
        assert_eq!(newest.as_deref(), Some("/admin/workers/w_1/events"));
        assert_eq!(older.as_deref(), Some("/admin/workers/w_1/events?cursor=4.1.j_%26"));
    }
}
