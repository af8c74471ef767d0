//! The list of jobs.

mod columns;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod customize;
mod groups;
mod heading;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod log_search;
mod query;
mod rows;
mod widths;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::columns::ListColumns;
use self::groups::JobGroups;
use self::query::{is_filtered, is_view, query_from_params, with_columns};
use self::rows::JobRows;
use super::compare::COMPARED_JOBS;
use crate::domain::ids::WorkerId;
use crate::domain::time::Timestamp;
use crate::protocol::jobs::saved_views::SavedView;
use crate::protocol::jobs::{JobCounts, JobsPage, JobsQuery};
use crate::protocol::problem::Problem;
use crate::protocol::status::{BulkTarget, JobPhase, JobStatus};
use crate::protocol::topic::Topic;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::bulk_action::permitted_actions;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::components::action::TrainLink;
use crate::ui::components::disk_full::DiskFull;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::filters::{FilterBar, FilterLink};
use crate::ui::components::icon::Icon;
use crate::ui::components::list_controls::ListSearch;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::pager::Pager;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::row_selection::RowSelection;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::page_query::{jobs_url, query_pairs, query_string};
use crate::ui::view_scope::ViewScope;

/// All jobs that the user may see, newest first, or their groups; a list of waiting jobs is in the order of the queue.
#[component]
pub(crate) fn JobsPage() -> impl IntoView {
    let params = use_query_map();
    let clock = use_clock();
    let query = Memo::new(move |_| params.with(|params| query_from_params(params, || clock.zone_name())));
    let grouping = Memo::new(move |_| query.with(|query| query.group));
    let shown = move || match grouping.get() {
        Some(by) => {
            let groups = move || view! { <JobGroups query=query.get() by=by/> };
            view! { {groups} }.into_erased()
        }
        None => view! { <UngroupedJobs query=query/> }.into_erased(),
    };
    view! {
        <PageHeader title=t().jobs.title>
            <TrainLink/>
        </PageHeader>
        <SavedViewLinks query=query/>
        {shown}
    }
    .into_erased()
}

#[component]
fn UngroupedJobs(query: Memo<JobsQuery>) -> impl IntoView {
    let backend = use_backend();
    let page = Resource::new(move || query.get(), {
        let backend = backend.clone();
        move |query| backend.jobs(with_columns(&query))
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend, query) = (scope.clone(), backend.clone(), query.get());
        Suspend::new(async move {
            match page.await {
                Ok(first) => {
                    scope.render(|| view! { <JobList first=first query=query backend=backend/> }.into_erased())
                }
                Err(problem) => list_problem(&query, problem),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

/// An error. A search can be corrected.
fn list_problem(query: &JobsQuery, problem: Problem) -> AnyView {
    if problem.code == "invalid_search" {
        view! { <div class="toolbar">{search_form(query)}</div> <ProblemNotice problem=problem/> }.into_erased()
    } else {
        view! { <ProblemPanel problem=problem/> }.into_erased()
    }
}

/// Links to the saved views. They are not shown if they cannot be loaded: the list is more important.
#[component]
fn SavedViewLinks(query: Memo<JobsQuery>) -> impl IntoView {
    let backend = use_backend();
    let views = Resource::new(|| (), move |()| backend.saved_views());
    let links = move |views: Vec<SavedView>| {
        let link = |saved: SavedView| {
            let href = format!("/jobs?{}", saved.query);
            let target = href.clone();
            let current = move || query.with(|query| is_view(query, &target)).then_some("true");
            let title = saved.shared.then(|| t().jobs.shared_by.of(&saved.owner));
            view! { <li><a class="filter" href=href title=title aria-current=current><bdi>{saved.name}</bdi></a></li> }
        };
        view! { <nav aria-label=t().jobs.views><ul class="filters">{views.into_iter().map(link).collect_view()}</ul></nav> }
    };
    let shown = move || {
        Suspend::new(async move {
            let views = views.await.map(|found| found.views).unwrap_or_default();
            (!views.is_empty()).then(|| links(views))
        })
    };
    view! { <Suspense>{shown}</Suspense> }.into_erased()
}

#[component]
fn JobList(first: JobsPage, query: JobsQuery, backend: SharedBackend) -> impl IntoView {
    let words = &t().jobs;
    let page = live_signal(first, &[Topic::Jobs], {
        let query = with_columns(&query);
        move || backend.jobs(query.clone())
    });
    let filtered = is_filtered(&query);
    let caption = match (&query.sort, query.phase) {
        (Some(_), _) => words.title,
        (None, Some(JobPhase::Waiting)) => words.caption_waiting,
        (None, _) => words.caption,
    };
    let columns = ListColumns::of(&query);
    let is_empty = Memo::new(move |_| page.with(|page| page.jobs.is_empty()));
    let (back, shown_query) = (jobs_url(&query), query.clone());
    let chips = view! { <ActiveFilters query=query.clone() page=page/> };
    let filters = {
        let query = query.clone();
        move || view! { <FilterBar label=words.filter filters=status_filters(&query, page.with(|page| page.counts))/> }
    };
    let form = search_and_view(&query);
    let is_full = Memo::new(move |_| page.with(|page| page.disk_full));
    view! {
        {move || is_full.get().then(|| view! { <DiskFull/> })}
        <div class="toolbar">{filters}{form}</div>
        {chips}
        <div class="panel">
            {move || {
                if !is_empty.get() {
                    let (back, rows) = (back.clone(), Signal::derive(move || page.track()));
                    let table = view! { <JobRows page=page caption=caption columns=columns.clone() query=shown_query.clone() back=back.clone()/> };
                    view! { <RowSelection to="/jobs/bulk" back=back actions=permitted_actions(BulkTarget::Jobs) compare=COMPARED_JOBS rows=rows>{table}</RowSelection> }.into_erased()
                } else if filtered {
                    view! {
                        <EmptyPanel glyph=Glyph::Search title=words.none_match text=words.none_match_hint>
                            <a class="btn btn-sm" href="/jobs">{words.show_all}</a>
                        </EmptyPanel>
                    }
                    .into_erased()
                } else {
                    view! {
                        <EmptyPanel glyph=Glyph::Jobs title=words.none_yet text=words.none_yet_hint>
                            <TrainLink/>
                        </EmptyPanel>
                    }
                    .into_erased()
                }
            }}
        </div>
        {move || page.with(|page| jobs_pager(&query, page))}
    }
    .into_erased()
}

/// The search. The other parameters stay as they are.
fn search_form(query: &JobsQuery) -> AnyView {
    let others = JobsQuery { q: None, zone: None, cursor: None, limit: None, ..query.clone() };
    view! { <ListSearch action="/jobs" q=query.q.clone() hidden_fields=query_pairs(&others) hint=t().jobs.search_hint completes_jobs=true/> }
        .into_erased()
}

/// The search, and a link to the page on which the columns of this list are chosen, and it is saved as a view.
fn search_and_view(query: &JobsQuery) -> AnyView {
    let page = JobsQuery { cursor: None, limit: None, zone: None, ..query.clone() };
    let (href, label) = (format!("/jobs/view{}", query_string(&page)), t().jobs.customize);
    let searched = [("jobs", query.q.clone()), ("config", query.config.clone())];
    let logs = (format!("/jobs/logs{}", query_string(&searched)), t().jobs.search_logs);
    view! {
        <div class="search-and-view">
            {search_form(query)}
            <a class="btn btn-sm btn-ghost" rel="external" href=logs.0 title=logs.1><Icon glyph=Glyph::File/><span class="max-2xl:sr-only">{logs.1}</span></a>
            <a class="btn btn-sm btn-ghost" rel="external" href=href title=label><Icon glyph=Glyph::Sliders/><span class="max-2xl:sr-only">{label}</span></a>
        </div>
    }
    .into_erased()
}

/// The filters that are not among the filters by status, each with a link that removes it.
#[component]
fn ActiveFilters(query: JobsQuery, page: RwSignal<JobsPage>) -> impl IntoView {
    let clock = use_clock();
    view! { {move || active_filter_chips(query.clone(), page, clock)} }.into_erased()
}

fn active_filter_chips(query: JobsQuery, page: RwSignal<JobsPage>, clock: PageClock) -> AnyView {
    let words = t();
    let first = JobsQuery { cursor: None, ..query.clone() };
    // The status and the phase are links above the list, the search is in its field, and headings show the order and the
    // columns.
    let JobsQuery {
        status: _,
        phase: _,
        user,
        label,
        q: _,
        zone: _,
        tag,
        config,
        worker,
        since,
        until,
        ended_since,
        sort: _,
        columns: _,
        widths: _,
        group: _,
        limit: _,
        cursor: _,
    } = query;
    let chip = |text: String, without: JobsQuery| {
        let name = words.work.without.of(&text);
        view! {
            <li><a class="chip chip-link" href=jobs_url(&without) aria-label=name><span class="wrap-anywhere">{text}</span><Icon glyph=Glyph::Cross/></a></li>
        }
    };
    // The name is known only if the worker has jobs in the list.
    let name = |id: WorkerId| {
        let worker_name =
            |page: &JobsPage| page.jobs.iter().find(|job| job.worker_id.as_ref() == Some(&id))?.worker_name.clone();
        page.with_untracked(worker_name).unwrap_or_else(|| short_id(id.as_str()))
    };
    let time = |title: &str, timestamp: String| {
        let when = Timestamp::parse_rfc3339(&timestamp).map_or(timestamp, |at| clock.format_timestamp(at));
        format!("{title}: {when}")
    };
    let chips = [
        user.map(|user| chip(words.job.submitted_by.of(user), JobsQuery { user: None, ..first.clone() })),
        label.map(|label| chip(label, JobsQuery { label: None, ..first.clone() })),
        tag.map(|tag| chip(words.jobs.tagged.of(&tag), JobsQuery { tag: None, ..first.clone() })),
        config.map(|config| chip(config, JobsQuery { config: None, ..first.clone() })),
        worker.map(|id| {
            chip(format!("{}: {}", words.jobs.worker, name(id)), JobsQuery { worker: None, ..first.clone() })
        }),
        since.map(|at| chip(time(words.work.since, at), JobsQuery { since: None, ..first.clone() })),
        until.map(|at| chip(time(words.work.until, at), JobsQuery { until: None, ..first.clone() })),
        ended_since.map(|at| chip(time(words.work.ended_since, at), JobsQuery { ended_since: None, ..first.clone() })),
    ];
    let chips: Vec<_> = chips.into_iter().flatten().collect();
    (!chips.is_empty()).then(|| view! { <ul class="chips">{chips}</ul> }).into_erased()
}

fn jobs_pager(query: &JobsQuery, page: &JobsPage) -> AnyView {
    let words = &t().jobs;
    let page_url = |cursor| jobs_url(&JobsQuery { cursor, ..query.clone() });
    let newest = query.cursor.is_some().then(|| page_url(None));
    let older = page.next_cursor.clone().map(|cursor| page_url(Some(cursor)));
    // Waiting jobs are listed in the order of the queue.
    let is_newest_first = query.sort.is_none() && query.phase != Some(JobPhase::Waiting);
    let names =
        if is_newest_first { (t().common.newer, t().common.older) } else { (t().common.first, t().workers.next) };
    let exports = (page.total > 0).then(|| export_links(query)).into_erased();
    view! { <Pager label=words.title first=newest next=older total=words.total.of(page.total) names=names between=exports/> }
        .into_erased()
}

/// Links to download all jobs that match the filters.
fn export_links(query: &JobsQuery) -> AnyView {
    let all = JobsQuery { cursor: None, limit: None, ..query.clone() };
    let url = |path: &str| format!("{path}{}", query_string(&all));
    view! {
        <span class="text-muted">{t().workers.export}</span>
        <a class="btn btn-sm btn-ghost" rel="external" href=url("/api/queue/export") download="jobs.csv">"CSV"</a>
        <a class="btn btn-sm btn-ghost" rel="external" href=url("/api/queue/export/json") download="jobs.jsonl">"JSON"</a>
    }
    .into_erased()
}

/// The filters by status, with the number of jobs that match the other filters.
fn status_filters(query: &JobsQuery, counts: JobCounts) -> Vec<FilterLink> {
    let words = t();
    let active = counts.waiting + counts.running;
    let ended = counts.completed + counts.failed + counts.cancelled;
    let filter_link = |label, count, status, phase| FilterLink {
        href: jobs_url(&JobsQuery { status, phase, cursor: None, ..query.clone() }),
        label,
        count: Some(count),
        current: query.status == status && query.phase == phase,
    };
    let by_phase = |label, count, phase| filter_link(label, count, None, Some(phase));
    let mut filters = vec![
        filter_link(words.common.all, active + ended, None, None),
        by_phase(words.work.waiting, counts.waiting, JobPhase::Waiting),
        by_phase(words.status.running, counts.running, JobPhase::Running),
        filter_link(words.status.completed, counts.completed, Some(JobStatus::Completed), None),
        filter_link(words.status.failed, counts.failed, Some(JobStatus::Failed), None),
        filter_link(words.status.cancelled, counts.cancelled, Some(JobStatus::Cancelled), None),
    ];
    // Phases that only other pages link to are shown while they are selected.
    match (query.phase, query.status) {
        (Some(JobPhase::Active), None) => filters.insert(1, by_phase(words.jobs.active, active, JobPhase::Active)),
        (Some(JobPhase::Ended), None) => filters.push(by_phase(words.jobs.ended, ended, JobPhase::Ended)),
        _ => {}
    }
    filters
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// The links above the list have the first two, the search field and the headings the next ones, the pager the last
    /// ones; the zone is the reader's.
    const WITHOUT_CHIP: [&str; 10] =
        ["status", "phase", "q", "zone", "sort", "columns", "widths", "group", "limit", "cursor"];

    fn chips_html(query: JobsQuery) -> String {
        let page = JobsPage {
            jobs: Vec::new(),
            total: 0,
            counts: JobCounts::default(),
            next_cursor: None,
            disk_full: false,
            server_time: Timestamp(0),
        };
        Owner::new().with(|| active_filter_chips(query, RwSignal::new(page), use_clock()).to_html())
    }

    #[test]
    fn each_filter_is_kept_by_a_search() {
        let (html, example) =
            (Owner::new().with(|| search_form(&JobsQuery::example()).to_html()), json!(JobsQuery::example()));
        let fields = example.as_object().expect("an object").keys();
        for field in fields.filter(|field| !["zone", "limit", "cursor"].contains(&field.as_str())) {
            assert!(html.contains(&format!("name=\"{field}\"")), "{field}: {html}");
        }
    }

    #[test]
    fn each_filter_has_a_chip_that_removes_it_or_is_listed() {
        let html = chips_html(JobsQuery::example()).replace("&amp;", "&");
        let example = json!(JobsQuery::example());
        let fields = example.as_object().expect("an object");
        let has_chip = |field: &str| {
            let mut others = fields.clone();
            others.retain(|name, _| name != field && name != "cursor");
            let others: JobsQuery = serde_json::from_value(Value::Object(others)).expect("a query");
            html.contains(&format!("href=\"{}\"", jobs_url(&others)))
        };
        let without_chip: BTreeSet<&str> = fields.keys().map(String::as_str).filter(|field| !has_chip(field)).collect();
        assert_eq!(without_chip, BTreeSet::from(WITHOUT_CHIP), "{html}");
    }
}
