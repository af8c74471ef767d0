//! The list of jobs.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, use_port};
use crate::protocol::queue::{JobCounts, JobsPage, JobsQuery, Phase};
use crate::protocol::status::JobStatus;
use crate::protocol::topic::Topic;
use crate::ui::components::action::TrainLink;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::Glyph;
use crate::ui::components::job_table::JobTable;
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::live::refreshed;
use crate::ui::port::SharedPort;

/// How many jobs a page shows.
const PAGE: u32 = 50;

/// The filters as they stand in the address.
fn query_of(params: &ParamsMap) -> JobsQuery {
    JobsQuery {
        status: params.get("status").and_then(|word| JobStatus::parse(&word)),
        phase: match params.get("phase").as_deref() {
            Some("active") => Some(Phase::Active),
            Some("ended") => Some(Phase::Ended),
            _ => None,
        },
        limit: Some(PAGE),
        cursor: params.get("cursor"),
        ..JobsQuery::default()
    }
}

/// All jobs, newest first, by state.
#[component]
pub(crate) fn JobsPage() -> impl IntoView {
    let words = &t().jobs;
    let port = use_port();
    let params = use_query_map();
    let query = Memo::new(move |_| params.with(query_of));
    let page = Resource::new(move || query.get(), {
        let port = port.clone();
        move |query| port.jobs(query)
    });
    let shown = move || {
        let port = port.clone();
        let query = query.get();
        Suspend::new(async move {
            match page.await {
                Ok(first) => view! { <Shown first=first query=query port=port/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title>
            <TrainLink/>
        </PageHead>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .erased()
}

#[component]
fn Shown(first: JobsPage, query: JobsQuery, port: SharedPort) -> impl IntoView {
    let words = &t().jobs;
    let page = refreshed(first, &[Topic::Jobs], {
        let query = query.clone();
        move || port.jobs(query.clone())
    });
    let filtered = query.status.is_some() || query.phase.is_some();
    let jobs = Signal::derive(move || page.with(|page| page.jobs.clone()));
    let is_empty = Memo::new(move |_| page.with(|page| page.jobs.is_empty()));
    let filters = {
        let query = query.clone();
        move || view! { <Filters label=words.filter filters=filters(&query, page.with(|page| page.counts))/> }
    };
    view! {
        {filters}
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    view! { <JobTable jobs=jobs/> }.erased()
                } else if filtered {
                    view! {
                        <Empty glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                            <a class="btn btn-sm" href="/jobs">{words.show_all}</a>
                        </Empty>
                    }
                    .erased()
                } else {
                    view! {
                        <Empty glyph=Glyph::Jobs title=words.none_yet text=words.none_yet_hint>
                            <TrainLink/>
                        </Empty>
                    }
                    .erased()
                }
            }}
        </div>
        {move || page.with(|page| view! { <Pager query=query.clone() total=page.total next=page.next_cursor.clone()/> })}
    }
    .erased()
}

#[component]
fn Pager(query: JobsQuery, total: u64, next: Option<String>) -> impl IntoView {
    let words = t();
    let newest = query.cursor.is_some().then(|| address(&JobsQuery { cursor: None, ..query.clone() }));
    let older = next.map(|cursor| address(&JobsQuery { cursor: Some(cursor), ..query }));
    view! {
        <div class="pager">
            <span class="text-muted">{words.jobs.total.of(total)}</span>
            {newest.map(|href| view! { <a class="btn btn-sm" href=href>{words.common.newer}</a> })}
            {older.map(|href| view! { <a class="btn btn-sm" href=href>{words.common.older}</a> })}
        </div>
    }
    .erased()
}

fn address(query: &JobsQuery) -> String {
    let phase = query.phase.map(|phase| match phase {
        Phase::Active => "active".to_owned(),
        Phase::Ended => "ended".to_owned(),
    });
    let status = query.status.map(|status| status.as_str().to_owned());
    format!("/jobs{}", query_string(&[("status", status), ("phase", phase), ("cursor", query.cursor.clone())]))
}

fn filters(query: &JobsQuery, counts: JobCounts) -> Vec<Filter> {
    let words = t();
    let active = counts.waiting + counts.running;
    let ended = counts.completed + counts.failed + counts.cancelled;
    let of = |label, count, status, phase| Filter {
        href: address(&JobsQuery { status, phase, ..JobsQuery::default() }),
        label,
        count: Some(count),
        current: query.status == status && query.phase == phase,
    };
    vec![
        of(words.common.all, active + ended, None, None),
        of(words.jobs.active, active, None, Some(Phase::Active)),
        of(words.jobs.ended, ended, None, Some(Phase::Ended)),
        of(words.status.completed, counts.completed, Some(JobStatus::Completed), None),
        of(words.status.failed, counts.failed, Some(JobStatus::Failed), None),
        of(words.status.cancelled, counts.cancelled, Some(JobStatus::Cancelled), None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_queries_are_inverse() {
        let mut params = ParamsMap::new();
        params.insert("status", "failed".to_owned());
        params.insert("cursor", "x=1".to_owned());
        let query = query_of(&params);
        assert_eq!(query.status, Some(JobStatus::Failed));
        assert_eq!(address(&query), "/jobs?status=failed&cursor=x%3D1");
        params.insert("phase", "nonsense".to_owned());
        assert_eq!(query_of(&params).phase, None);
    }
}
