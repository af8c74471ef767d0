//! The list of jobs, grouped: a row for each configuration, user or tag, with a link to its jobs.

use leptos::prelude::*;

use super::{list_problem, search_and_view, status_filters};
use crate::domain::job_search::groups::JobGrouping;
use crate::domain::search_terms::quote;
use crate::protocol::jobs::{JobCounts, JobGroupView, JobGroupsPage, JobsQuery};
use crate::protocol::status::{JobPhase, JobStatus};
use crate::protocol::topic::Topic;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::filters::FilterBar;
use crate::ui::components::icon::Icon;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::jobs_url;
use crate::ui::view_scope::ViewScope;

/// The maximum number of groups.
const MAX_GROUPS: u32 = 500;

/// The groups of a list; it follows changes.
#[component]
pub(super) fn JobGroups(query: JobsQuery, by: JobGrouping) -> impl IntoView {
    let (backend, scope) = (use_backend(), ViewScope::current());
    let query = JobsQuery { columns: None, cursor: None, limit: Some(MAX_GROUPS), ..query };
    let groups = Resource::new(|| (), {
        let (backend, query) = (backend.clone(), query.clone());
        move |()| backend.job_groups(query.clone())
    });
    let shown = move || {
        let (scope, backend, query) = (scope.clone(), backend.clone(), query.clone());
        Suspend::new(async move {
            match groups.await {
                Ok(first) => {
                    scope.render(|| view! { <GroupTable first=first query=query by=by backend=backend/> }.into_erased())
                }
                Err(problem) => list_problem(&query, problem),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn GroupTable(first: JobGroupsPage, query: JobsQuery, by: JobGrouping, backend: SharedBackend) -> impl IntoView {
    let words = t();
    let page = live_signal(first, &[Topic::Jobs], {
        let query = query.clone();
        move || backend.job_groups(query.clone())
    });
    let filters = {
        let query = query.clone();
        move || view! { <FilterBar label=words.jobs.filter filters=status_filters(&query, page.with(|page| page.counts))/> }
    };
    let rows = {
        let query = query.clone();
        move || page.with(|page| page.groups.iter().map(|group| group_row(&query, by, group)).collect_view())
    };
    let table = move || {
        let heading = |label: &'static str| view! { <th scope="col" class="num">{label}</th> };
        view! {
            <div class="table-scroll">
                <table class="data">
                    <caption class="sr-only">{words.jobs.title}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{grouping_name(by)}</th>
                            {heading(words.work.waiting)}
                            {heading(words.status.running)}
                            {heading(words.status.completed)}
                            {heading(words.status.failed)}
                            <th scope="col" class="num max-md:hidden">{words.status.cancelled}</th>
                            <th scope="col" class="max-md:hidden">{words.jobs.newest}</th>
                        </tr>
                    </thead>
                    <tbody>{rows.clone()}</tbody>
                </table>
            </div>
        }
    };
    let form = search_and_view(&query);
    let chip = {
        let (text, href) = (
            words.jobs.grouped_by.of(grouping_name(by)),
            jobs_url(&JobsQuery { group: None, limit: None, ..query.clone() }),
        );
        let name = words.work.without.of(&text);
        view! { <li><a class="chip chip-link" href=href aria-label=name><span class="wrap-anywhere">{text}</span><Icon glyph=Glyph::Cross/></a></li> }
    };
    let is_empty = Memo::new(move |_| page.with(|page| page.groups.is_empty()));
    let shown = move || {
        if is_empty.get() {
            view! {
                <EmptyPanel glyph=Glyph::Search title=words.jobs.none_match text=words.jobs.none_match_hint>
                    <a class="btn btn-sm" href="/jobs">{words.jobs.show_all}</a>
                </EmptyPanel>
            }
            .into_erased()
        } else {
            table().into_erased()
        }
    };
    let total = move || page.with(|page| words.jobs.groups.of(page.total));
    view! {
        <div class="toolbar">{filters}{form}</div>
        <ul class="chips">{chip}</ul>
        <div class="panel">{shown}</div>
        <p class="pager text-muted">{total}</p>
    }
    .into_erased()
}

/// What a grouping is called.
pub(super) fn grouping_name(by: JobGrouping) -> &'static str {
    match by {
        JobGrouping::Config => t().jobs.column.config,
        JobGrouping::User => t().jobs.column.user,
        JobGrouping::Tag => t().jobs.tag,
    }
}

fn group_row(query: &JobsQuery, by: JobGrouping, group: &JobGroupView) -> AnyView {
    let jobs = jobs_of_group(query, by, &group.value);
    let JobCounts { waiting, running, completed, failed, cancelled } = group.counts;
    let number = |count: u64, status, phase| {
        let href = jobs_url(&JobsQuery { status, phase, ..jobs.clone() });
        if count == 0 {
            view! { <span class="text-muted">"0"</span> }.into_erased()
        } else {
            view! { <a class="quiet-link" href=href>{t().format_integer(count)}</a> }.into_erased()
        }
    };
    let name = if group.value.is_empty() { t().jobs.no_tag.to_owned() } else { group.value.clone() };
    view! {
        <tr>
            <th scope="row"><a class="row-link" href=jobs_url(&jobs)><bdi>{name}</bdi></a></th>
            <td class="num">{number(waiting, None, Some(JobPhase::Waiting))}</td>
            <td class="num">{number(running, None, Some(JobPhase::Running))}</td>
            <td class="num">{number(completed, Some(JobStatus::Completed), None)}</td>
            <td class="num">{number(failed, Some(JobStatus::Failed), None)}</td>
            <td class="num max-md:hidden">{number(cancelled, Some(JobStatus::Cancelled), None)}</td>
            <td class="max-md:hidden"><RelativeTime at=group.newest/></td>
        </tr>
    }
    .into_erased()
}

/// The jobs of a group, with the other filters of the list. Jobs without a tag are those without any letter in a tag.
fn jobs_of_group(query: &JobsQuery, by: JobGrouping, value: &str) -> JobsQuery {
    let all = JobsQuery { group: None, limit: None, ..query.clone() };
    let with_term = |term: String| {
        let terms: Vec<String> = query.q.iter().cloned().chain([term]).collect();
        JobsQuery { q: Some(terms.join(" ")), ..all.clone() }
    };
    match by {
        JobGrouping::Config if query.config.is_none() => JobsQuery { config: Some(value.to_owned()), ..all },
        JobGrouping::User if query.user.is_none() => JobsQuery { user: Some(value.to_owned()), ..all },
        JobGrouping::Tag if value.is_empty() => with_term("-tag:*".to_owned()),
        JobGrouping::Tag if query.tag.is_none() => JobsQuery { tag: Some(value.to_owned()), ..all },
        JobGrouping::Tag => with_term(format!("tag={}", quote(value))),
        JobGrouping::Config | JobGrouping::User => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_link_to_their_jobs() {
        let query = JobsQuery { q: Some("loss<1".to_owned()), group: Some(JobGrouping::Tag), ..JobsQuery::default() };
        let url = |by, value| jobs_url(&jobs_of_group(&query, by, value));
        assert_eq!(url(JobGrouping::Config, "flux"), "/jobs?q=loss%3C1&config=flux");
        assert_eq!(url(JobGrouping::User, "ada"), "/jobs?user=ada&q=loss%3C1");
        assert_eq!(url(JobGrouping::Tag, "a b"), "/jobs?q=loss%3C1&tag=a+b");
        assert_eq!(url(JobGrouping::Tag, ""), "/jobs?q=loss%3C1+-tag%3A*");
        let tagged = JobsQuery { tag: Some("x".to_owned()), ..JobsQuery::default() };
        assert_eq!(jobs_url(&jobs_of_group(&tagged, JobGrouping::Tag, "y")), "/jobs?q=tag%3Dy&tag=x");
    }
}
