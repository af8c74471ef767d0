//! The revisions of a configuration with their jobs, and the forms that compare them.

use leptos::prelude::*;

use super::config_query::ConfigPageQuery;
use crate::protocol::configs::{RevisionView, RevisionsPage};
use crate::protocol::jobs::{JobCounts, JobsQuery};
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::format::config_url;
use crate::ui::i18n::t;
use crate::ui::page_query::jobs_url;

/// All revisions, with a form to compare two of them.
#[component]
pub(super) fn RevisionList(page: RevisionsPage, page_query: ConfigPageQuery) -> impl IntoView {
    let words = &t().server_pages().configs;
    let numbers: Vec<u32> = page.revisions.iter().map(|revision| revision.revision).collect();
    let first = numbers.last().copied().unwrap_or(1);
    let rows = page
        .revisions
        .into_iter()
        .map(|revision| view! { <RevisionRow revision=revision first=first page_query=page_query.clone()/> });
    let rows = rows.collect_view();
    let has_several = numbers.len() > 1;
    let to = page_query.revision.unwrap_or(first);
    let from = page_query
        .against
        .filter(|_| page_query.with.is_none())
        .unwrap_or_else(|| if to > first { to - 1 } else { first });
    let select = move |id: &'static str, label: &'static str, chosen: u32| {
        let options = numbers
            .iter()
            .map(|number| view! { <option value=*number selected={*number == chosen}>{*number}</option> });
        view! {
            <label class="text-muted" for=id>{label}</label>
            <select class="select select-sm w-auto" id=id name=id>{options.collect_view()}</select>
        }
        .into_erased()
    };
    view! {
        <section class="panel" aria-labelledby="revisions">
            <h2 id="revisions" class="panel-head">{words.revisions}</h2>
            <table class="data" aria-labelledby="revisions">
                <thead><tr>
                    <th scope="col">{words.revision}</th>
                    <th scope="col">{words.stored}</th>
                    <th scope="col" class="num">{words.jobs}</th>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
            {has_several.then(|| view! {
                <form method="get" action=config_url(&page_query.name) class="compare">
                    {select("against", words.from, from)}
                    {select("revision", words.to, to)}
                    {page_query.split.then(|| view! { <input type="hidden" name="view" value="split"/> })}
                    <button class="btn btn-sm">{words.compare}</button>
                </form>
            })}
        </section>
    }
    .into_erased()
}

#[component]
fn RevisionRow(revision: RevisionView, first: u32, page_query: ConfigPageQuery) -> impl IntoView {
    let words = &t().server_pages().configs;
    let number = revision.revision;
    let is_current = page_query.revision == Some(number);
    let revision_url = ConfigPageQuery { revision: Some(number), ..page_query.alone() }.url();
    let changed = (number > first).then(|| {
        let name = format!("{}: {}", words.what_changed, t().server_pages().train.revision.of(number));
        let to_previous = ConfigPageQuery { revision: Some(number), against: Some(number - 1), ..page_query.alone() };
        let changes_url = ConfigPageQuery { split: page_query.split, ..to_previous }.url();
        view! { <a class="quiet-link revision-changes" href=changes_url aria-label=name>{words.what_changed}</a> }
    });
    let has_jobs = revision.jobs > 0;
    let jobs = if has_jobs {
        let label = format!("{}: {}", t().format_integer(revision.jobs), words.jobs_of.of(number));
        let query = JobsQuery {
            config: Some(page_query.name.clone()),
            q: Some(format!("revision:{number}")),
            ..JobsQuery::default()
        };
        view! { <a class="row-link" href=jobs_url(&query) aria-label=label>{t().format_integer(revision.jobs)}</a> }
            .into_erased()
    } else {
        t().format_integer(0).into_erased()
    };
    view! {
        <tr class=if is_current { "is-here" } else { "" }>
            <th scope="row">
                <a class="row-link revision-number" href=revision_url aria-current=is_current.then_some("true")>{number}</a>
                {changed}
            </th>
            <td><RelativeTime at=revision.created_at/> {revision.created_by.map(|by| view! { <span class="row-sub wrap-anywhere">{by}</span> })}</td>
            <td class="num">{jobs}{has_jobs.then(|| view! { <JobCountList counts=revision.job_counts/> })}</td>
        </tr>
    }
    .into_erased()
}

/// The numbers of jobs by status, without those that are zero.
#[component]
fn JobCountList(counts: JobCounts) -> impl IntoView {
    let words = t();
    let JobCounts { waiting, running, completed, failed, cancelled } = counts;
    let all = [
        (words.work.waiting, waiting),
        (words.status.running, running),
        (words.status.completed, completed),
        (words.status.failed, failed),
        (words.status.cancelled, cancelled),
    ];
    let items = all.into_iter().filter(|(_, count)| *count > 0).map(|(label, count)| {
        view! { <li class="row-sub">{format!("{label}: {}", words.format_integer(count))}</li> }
    });
    view! { <ul>{items.collect_view()}</ul> }.into_erased()
}

/// A form to compare the shown revision with another configuration: first its newest revision, then any other.
#[component]
pub(super) fn OtherConfig(names: Vec<String>, revisions: Vec<u32>, page_query: ConfigPageQuery) -> impl IntoView {
    let words = &t().server_pages().configs;
    let chosen = page_query.with.clone();
    // A deleted one can still be compared through its address.
    let deleted = chosen.clone().filter(|chosen| !names.contains(chosen));
    let others: Vec<String> =
        deleted.into_iter().chain(names.into_iter().filter(|name| *name != page_query.name)).collect();
    if others.is_empty() {
        return ().into_erased();
    }
    let names = others.into_iter().map(|name| {
        let is_chosen = chosen.as_ref() == Some(&name);
        view! { <option value=name.clone() selected=is_chosen>{name.clone()}</option> }
    });
    let revision_field = (!revisions.is_empty()).then(|| {
        let options = revisions.into_iter().map(|number| {
            view! { <option value=number selected={page_query.against == Some(number)}>{number}</option> }
        });
        view! {
            <label class="text-muted" for="other-revision">{words.revision}</label>
            <select class="select select-sm w-auto" id="other-revision" name="against">{options.collect_view()}</select>
        }
    });
    view! {
        <section class="panel" aria-labelledby="other">
            <h2 id="other" class="panel-head">{words.other}</h2>
            <form method="get" action=config_url(&page_query.name) class="compare">
                <input type="hidden" name="revision" value=page_query.revision.map(|revision| revision.to_string())/>
                {page_query.split.then(|| view! { <input type="hidden" name="view" value="split"/> })}
                <label class="sr-only" for="other-name">{words.other_name}</label>
                <select class="select select-sm min-w-0 grow" id="other-name" name="with">{names.collect_view()}</select>
                {revision_field}
                <button class="btn btn-sm">{words.compare}</button>
            </form>
        </section>
    }
    .into_erased()
}
