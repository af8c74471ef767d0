//! The page on which users choose the columns of the list, and save views of it. Each choice is a link, so that the
//! address has the view.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::columns::{ListColumns, column_name};
use super::groups::grouping_name;
use super::widths::{self, NAME};
use crate::domain::access::Permission;
use crate::domain::job_search::columns::{JobListColumn, JobListColumns, MAX_COLUMNS};
use crate::domain::job_search::groups::JobGrouping;
use crate::domain::job_search::order::JobSortKey;
use crate::protocol::jobs::saved_views::{SavedView, SavedViews};
use crate::protocol::jobs::{JobColumns, JobsQuery};
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::{from_params, jobs_url, query_string};
use crate::ui::permissions::{has_permission, is_reader};

/// How many CSS pixels a link makes a column narrower or wider.
const WIDTH_STEP: f64 = 32.0;

/// The columns of a list, and the saved views.
#[component]
pub(crate) fn CustomizeJobsPage() -> impl IntoView {
    let words = &t().server_pages().job_list;
    let query = use_query_map().with_untracked(from_params::<JobsQuery>);
    let query = JobsQuery { cursor: None, limit: None, zone: None, ..query };
    let (backend, page_backend) = (use_backend(), use_page_backend());
    let data = Resource::new(
        || (),
        move |()| {
            let (columns, views) = (page_backend.job_columns(), backend.saved_views());
            async move { Ok((columns.await?, views.await?)) }
        },
    );
    let list = jobs_url(&query);
    let shown = move || {
        let query = query.clone();
        Suspend::new(async move {
            match data.await {
                Ok((columns, views)) => view! {
                    <div class="space-y-6">
                        <ColumnChooser query=query.clone() known=columns/>
                        <GroupingLinks query=query.clone()/>
                        <SaveViewForm query=query.clone()/>
                        <ViewList query=query views=views/>
                    </div>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title intro=words.intro above=(list, t().jobs.title)/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// This page for a list with other columns.
fn page_url(query: &JobsQuery, columns: &JobListColumns) -> String {
    format!("/jobs/view{}", query_string(&JobsQuery { columns: Some(columns.to_string()), ..query.clone() }))
}

#[component]
fn ColumnChooser(query: JobsQuery, known: JobColumns) -> impl IntoView {
    let words = &t().server_pages().job_list;
    let list = ListColumns::of(&query);
    let rows = list.columns.0.iter().map(|column| shown_column(&query, &list, column)).collect_view();
    let shown = &list.columns;
    let offered = known.columns.iter().filter_map(|name| JobListColumn::parse(name));
    let offered: Vec<JobListColumn> = offered.filter(|column| !shown.0.contains(column)).collect();
    let of_kind = |is_kind: fn(&JobListColumn) -> bool| offered.iter().filter(move |column| is_kind(column));
    let is_full = shown.0.len() >= MAX_COLUMNS;
    let group = |title: &'static str, is_kind: fn(&JobListColumn) -> bool| {
        let links: Vec<_> = of_kind(is_kind).map(|column| add_link(&query, shown, column)).collect();
        (!links.is_empty()).then(|| view! { <h3 class="facet-name">{title}</h3> <ul class="chips">{links}</ul> })
    };
    let additions = if is_full {
        view! { <p class="text-muted">{words.full.of(MAX_COLUMNS)}</p> }.into_erased()
    } else {
        view! {
            {group(words.add_general, |column| !column.has_value())}
            {group(words.add_metrics, JobListColumn::reads_metrics)}
            {group(words.add_config, JobListColumn::reads_config)}
        }
        .into_erased()
    };
    let is_default = query.columns.is_none() && query.widths.is_none();
    let default = format!("/jobs/view{}", query_string(&JobsQuery { columns: None, widths: None, ..query.clone() }));
    view! {
        <section class="panel" aria-labelledby="columns">
            <div class="panel-head">
                <h2 id="columns">{words.columns}</h2>
                <span class="text-sm font-normal text-muted">{words.columns_hint}</span>
            </div>
            <div class="column-chooser">
                <ol class="rows">{name_column(&query, &list)}{rows}</ol>
                <section aria-labelledby="add-columns">
                    <h3 id="add-columns" class="font-medium">{words.add}</h3>
                    {additions}
                </section>
            </div>
            <p class="panel-actions">
                <a class="btn btn-primary btn-sm" rel="external" href=jobs_url(&query)>{words.show}</a>
                {(!is_default).then(|| view! { <a class="btn btn-ghost btn-sm" rel="external" href=default>{words.reset}</a> })}
            </p>
        </section>
    }
    .into_erased()
}

/// The name, which can be neither moved nor removed.
fn name_column(query: &JobsQuery, list: &ListColumns) -> AnyView {
    view! {
        <li class="column-row">
            <span class="min-w-0 truncate">{t().jobs.job}</span>
            {width_links(query, list, NAME, list.width_of_name(), t().jobs.job)}
            <span class="column-moves"></span>
        </li>
    }
    .into_erased()
}

/// The width of a column, and links that change it.
fn width_links(query: &JobsQuery, list: &ListColumns, column: &str, width: u16, name: &str) -> AnyView {
    let words = &t().server_pages().job_list;
    let link = |step: f64, label: String, glyph| {
        let changed = widths::clamp(f64::from(width) + step);
        (changed != width).then(|| {
            let widths = list.widths.with(column, changed).to_text();
            let url = format!("/jobs/view{}", query_string(&JobsQuery { widths, ..query.clone() }));
            view! { <a class="icon-button" rel="external" href=url aria-label=label.clone() title=label><Icon glyph=glyph/></a> }
        })
    };
    let shown = list.widths.get(column).map_or_else(|| words.automatic.to_owned(), |width| words.pixels.of(width));
    view! {
        <span class="column-width">
            <span class="text-muted">{shown}</span>
            {link(-WIDTH_STEP, words.narrower.of(name), Glyph::Minus)}
            {link(WIDTH_STEP, words.wider.of(name), Glyph::Plus)}
        </span>
    }
    .into_erased()
}

fn shown_column(query: &JobsQuery, list: &ListColumns, column: &JobListColumn) -> AnyView {
    let shown = &list.columns;
    let words = &t().server_pages().job_list;
    let name = column_name(column);
    let kind = match column {
        JobListColumn::Sortable(JobSortKey::Metric(_)) => Some(words.metric),
        JobListColumn::Sortable(JobSortKey::Config(_)) => Some(words.config),
        JobListColumn::Sortable(_) | JobListColumn::Detail(_) => None,
    };
    let link = |columns: JobListColumns, label: String, glyph| {
        // The columns of a list without any are the default ones.
        (columns != *shown && !columns.0.is_empty()).then(|| {
            view! { <a class="icon-button" rel="external" href=page_url(query, &columns) aria-label=label.clone() title=label><Icon glyph=glyph/></a> }
        })
    };
    view! {
        <li class="column-row">
            <span class="min-w-0 truncate" title=column.to_string()><bdi>{name.clone()}</bdi>{kind.map(|kind| view! { <span class="text-muted">" "{kind}</span> })}</span>
            {width_links(query, list, &column.to_string(), list.width_of(column), &name)}
            <span class="column-moves">
                {link(shown.moved(column, false), words.earlier.of(&name), Glyph::Up)}
                {link(shown.moved(column, true), words.later.of(&name), Glyph::Down)}
                {link(shown.without(column), words.remove.of(&name), Glyph::Cross)}
            </span>
        </li>
    }
    .into_erased()
}

fn add_link(query: &JobsQuery, shown: &JobListColumns, column: &JobListColumn) -> AnyView {
    let name = column_name(column);
    let label = t().server_pages().job_list.add_column.of(&name);
    let href = page_url(query, &shown.with(column.clone()));
    view! {
        <li><a class="chip chip-link" rel="external" href=href aria-label=label title=column.to_string()><bdi class="wrap-anywhere">{name}</bdi><Icon glyph=Glyph::Plus/></a></li>
    }
    .into_erased()
}

#[component]
fn GroupingLinks(query: JobsQuery) -> impl IntoView {
    let words = &t().server_pages().job_list;
    let link = |group: Option<JobGrouping>| {
        let (label, is_current) = (group.map_or(words.no_groups, grouping_name), query.group == group);
        let href = jobs_url(&JobsQuery { group, ..query.clone() });
        view! { <li><a class="filter" rel="external" href=href aria-current=is_current.then_some("true")>{label}</a></li> }
    };
    let choices = [None].into_iter().chain(JobGrouping::ALL.map(Some));
    view! {
        <section class="panel" aria-labelledby="groups">
            <h2 id="groups" class="panel-head">{words.groups}</h2>
            <ul class="filters group-choices">{choices.map(link).collect_view()}</ul>
        </section>
    }
    .into_erased()
}

#[component]
fn SaveViewForm(query: JobsQuery) -> impl IntoView {
    let words = &t().server_pages().job_list;
    let (problem, typed) = form_problem(FormName::View);
    let name = typed.get("name").cloned().unwrap_or_default();
    let share = has_permission(Permission::JobSubmit).then(|| {
        view! {
            <div class="choice">
                <input type="checkbox" class="checkbox checkbox-sm" id="shared" name="shared" checked=typed.contains_key("shared")/>
                <label for="shared"><span class="font-medium">{words.share}</span><span class="choice-text">{words.share_hint}</span></label>
            </div>
        }
    });
    view! {
        <section class="panel form" aria-labelledby="save">
            <h2 id="save" class="panel-title">{words.save_title}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/jobs/views" class="space-y-4">
                <input type="hidden" name="query" value=query_of(&query)/>
                <Field id="name" label=words.name hint=words.name_hint>
                    <input class="input w-full" id="name" name="name" required=true maxlength="64" autocomplete="off"
                        aria-describedby="name-hint" value=name/>
                </Field>
                {share}
                <div class="form-actions"><button class="btn btn-primary"><Icon glyph=Glyph::Check/>{words.save}</button></div>
            </form>
        </section>
    }
    .into_erased()
}

fn query_of(query: &JobsQuery) -> String {
    query_string(query).trim_start_matches('?').to_owned()
}

#[component]
fn ViewList(query: JobsQuery, views: SavedViews) -> impl IntoView {
    let words = &t().server_pages().job_list;
    let rows: Vec<_> = views.views.iter().map(|view| view_row(&query, view)).collect();
    let list = if rows.is_empty() {
        view! { <p class="p-5 text-muted">{words.none}</p> }.into_erased()
    } else {
        view! { <ul class="rows">{rows}</ul> }.into_erased()
    };
    view! {
        <section class="panel" aria-labelledby="views">
            <h2 id="views" class="panel-head">{words.saved}</h2>
            {list}
        </section>
    }
    .into_erased()
}

fn view_row(query: &JobsQuery, saved: &SavedView) -> AnyView {
    let words = &t().server_pages().job_list;
    let is_own = is_reader(&saved.owner);
    let kind = if saved.shared { t().jobs.shared_by.of(&saved.owner) } else { words.personal.to_owned() };
    let (owner, name, query) = (saved.owner.clone(), saved.name.clone(), query_of(query));
    let delete = (is_own || has_permission(Permission::QueueManage)).then(|| {
        view! {
            <ConfirmedForm action="/ui/jobs/views/delete" label=words.delete named=Some(format!("{}: {}", words.delete, saved.name))
                text=words.delete_text confirm=words.delete_confirm class="btn btn-sm btn-ghost text-bad">
                <input type="hidden" name="owner" value=owner/>
                <input type="hidden" name="name" value=name/>
                <input type="hidden" name="query" value=query/>
            </ConfirmedForm>
        }
    });
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <a class="row-link" rel="external" href=format!("/jobs?{}", saved.query)>{saved.name.clone()}</a>
                <span class="row-sub">{kind}</span>
            </span>
            {delete}
        </li>
    }
    .into_erased()
}
