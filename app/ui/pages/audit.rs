//! The audit log, filtered by the query of the address.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::domain::text::{escape, escape_lines};
use crate::domain::time::Timestamp;
use crate::protocol::audit::{AuditEntry, AuditFilters, AuditPage as Page, AuditQuery};
use crate::ui::audit_actions::{action_sentence, action_sentences};
use crate::ui::backend::use_page_backend;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::pager::Pager;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::subject_link::subject_link;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::{from_params, query_string};

/// Number of entries per page.
const PAGE_SIZE: u32 = 50;

fn audit_url(path: &str, filters: &AuditFilters, cursor: Option<String>) -> String {
    format!("{path}{}", query_string(&AuditQuery { filters: filters.clone(), limit: None, cursor }))
}

#[component]
pub(crate) fn AuditPage() -> impl IntoView {
    let words = &t().server_pages().audit;
    let page_backend = use_page_backend();
    let AuditQuery { filters, cursor, .. } = use_query_map().with_untracked(from_params);
    let export = audit_url("/api/audit/export", &filters, None);
    let query = AuditQuery { filters: filters.clone(), limit: Some(PAGE_SIZE), cursor: cursor.clone() };
    let page = Resource::new(|| (), move |()| page_backend.audit(query.clone()));
    let shown = {
        let filters = filters.clone();
        move || {
            let (filters, has_newer) = (filters.clone(), cursor.is_some());
            Suspend::new(async move {
                match page.await {
                    Ok(page) => view! { <EntryTable page=page filters=filters has_newer=has_newer/> }.into_erased(),
                    Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
                }
            })
        }
    };
    view! {
        <PageHeader title=t().nav.audit intro=words.intro>
            <a class="btn btn-sm" href="/admin/audit/verify"><Icon glyph=Glyph::Shield/>{words.verify}</a>
            <a class="btn btn-sm" href=export><Icon glyph=Glyph::Download/>{words.export}</a>
        </PageHeader>
        <FilterForm filters=filters/>
        <div data-part="entries"><Suspense fallback=Skeleton>{shown}</Suspense></div>
    }
    .into_erased()
}

#[component]
fn FilterForm(filters: AuditFilters) -> impl IntoView {
    let (words, clock) = (&t().server_pages().audit, use_clock());
    let has_filters = filters != AuditFilters::default();
    let text_input = |name: &'static str, label: &'static str, value: Option<String>| {
        view! {
            <div class="field">
                <label for=name>{label}</label>
                <input class="input input-sm" id=name name=name value=value autocomplete="off" spellcheck="false"/>
            </div>
        }
    };
    let time_input = |name: &'static str, label: &'static str, value: Option<String>| {
        let value = input_timestamp(value.as_ref(), clock);
        view! {
            <div class="field">
                <label for=name>{format!("{label} ({})", clock.zone_name())}</label>
                <input class="input input-sm" type="datetime-local" id=name name=name value=value/>
            </div>
        }
    };
    view! {
        <form method="get" action="/admin/audit" class="panel filter-form" aria-label=words.filter>
            <TimeZoneInput clock=clock/>
            {text_input("actor", words.actor, filters.actor)}
            <div class="field">
                <label for="action">{words.action}</label>
                <ActionSelect chosen=filters.action/>
            </div>
            {text_input("target", words.target, filters.target)}
            {text_input("request_id", words.request, filters.request_id)}
            {time_input("since", words.since, filters.since)}
            {time_input("until", words.until, filters.until)}
            <div class="form-actions">
                <button class="btn btn-sm btn-primary"><Icon glyph=Glyph::Search/>{words.show}</button>
                {has_filters.then(|| view! { <a class="btn btn-sm btn-ghost" href="/admin/audit">{words.clear}</a> })}
            </div>
        </form>
    }
    .into_erased()
}

/// A select box of all actions, grouped by the word before the dot.
#[component]
fn ActionSelect(chosen: Option<String>) -> impl IntoView {
    let words = &t().server_pages().audit;
    let area = |action: &str| action.split('.').next().unwrap_or_default().to_owned();
    let option = |value: String, label: String| {
        let selected = chosen.as_deref() == Some(&value);
        view! { <option value=value selected=selected>{label}</option> }
    };
    let known: Vec<(&str, &str)> = action_sentences().collect();
    let groups = known.chunk_by(|a, b| area(a.0) == area(b.0)).map(|group| {
        let area = area(group[0].0);
        let all = option(format!("{area}."), words.all_of.of(&area));
        let each = group.iter().map(|(action, label)| option((*action).to_owned(), (*label).to_owned()));
        view! { <optgroup label=area>{all}{each.collect_view()}</optgroup> }
    });
    let groups = groups.collect_view();
    let is_known = chosen.as_ref().is_none_or(|action| action.ends_with('.') || action_sentence(action).is_some());
    let unknown_option = chosen.clone().filter(|_| !is_known).map(|action| option(action.clone(), action));
    view! {
        <select class="select select-sm" id="action" name="action">
            <option value="">{words.any_action}</option>
            {unknown_option}
            {groups}
        </select>
    }
    .into_erased()
}

/// The table. On small screens the details of an entry are laid out below it, so the table roles are explicit.
#[component]
fn EntryTable(page: Page, filters: AuditFilters, has_newer: bool) -> impl IntoView {
    let words = &t().server_pages().audit;
    if page.entries.is_empty() {
        return view! {
            <div class="panel">
                <EmptyPanel glyph=Glyph::Search title=words.none text=words.none_hint>
                    <a class="btn btn-sm" href="/admin/audit">{words.clear}</a>
                </EmptyPanel>
            </div>
        }
        .into_erased();
    }
    let newest = has_newer.then(|| audit_url("/admin/audit", &filters, None));
    let older = page.next_cursor.clone().map(|cursor| audit_url("/admin/audit", &filters, Some(cursor)));
    let rows = page.entries.iter().map(|entry| entry_row(&page, entry)).collect_view();
    view! {
        <div class="panel">
            <table class="data audit-log" role="table">
                <caption class="sr-only">{words.caption}</caption>
                <thead role="rowgroup">
                    <tr role="row">
                        <th scope="col" role="columnheader" class="max-md:hidden">{words.when}</th>
                        <th scope="col" role="columnheader">{words.action}</th>
                        <th scope="col" role="columnheader" class="max-md:hidden">{words.actor}</th>
                        <th scope="col" role="columnheader" class="max-lg:hidden">{words.target}</th>
                        <th scope="col" role="columnheader">{words.detail}</th>
                    </tr>
                </thead>
                <tbody role="rowgroup">{rows}</tbody>
            </table>
        </div>
        <Pager label=words.caption first=newest next=older/>
    }
    .into_erased()
}

fn entry_row(audit_log: &Page, entry: &AuditEntry) -> AnyView {
    let language = t();
    let words = &language.server_pages().audit;
    let label = action_sentence(&entry.action).map_or_else(|| escape(&entry.action).into_owned(), ToOwned::to_owned);
    let request = entry.request_id.clone().map(|id| {
        let only = AuditFilters { request_id: Some(id.clone()), ..AuditFilters::default() };
        view! { <a class="quiet-link" href=audit_url("/admin/audit", &only, None)>{words.request}" "{escape(&id).into_owned()}</a> }
    });
    let detail_text = match &entry.detail {
        serde_json::Value::Null => None,
        serde_json::Value::Object(fields) if fields.is_empty() => None,
        detail => serde_json::to_string_pretty(detail).ok().map(|text| escape_lines(&text).into_owned()),
    };
    let origin =
        words.entry.with(&[&language.format_integer(entry.seq.unsigned_abs()), &escape(&entry.chain).into_owned()]);
    let actor = || subject_link(audit_log, &entry.actor);
    let target = || subject_link(audit_log, &entry.target);
    view! {
        <tr role="row">
            <td role="cell" class="max-md:hidden"><RelativeTime at=entry.at/></td>
            <th scope="row" role="rowheader">
                <span class="font-medium">{label}</span>
                <code class="row-sub">{escape(&entry.action).into_owned()}</code>
                <span class="row-sub md:hidden"><RelativeTime at=entry.at/>" · "{actor()}</span>
                <span class="row-sub lg:hidden">{target()}</span>
            </th>
            <td role="cell" class="max-md:hidden">{actor()}</td>
            <td role="cell" class="max-lg:hidden">{target()}</td>
            <td role="cell" class="audit-log-detail">
                <details class="fold">
                    <summary aria-label=format!("{}: {origin}", words.detail)>{words.detail}</summary>
                    {detail_text.map(|text| view! { <pre><code>{text}</code></pre> })}
                    <span class="row-sub">{origin}</span>
                    <code class="row-sub" title=entry.hash.clone()>{entry.hash.chars().take(16).collect::<String>()}</code>
                    {request}
                </details>
            </td>
        </tr>
    }
    .into_erased()
}

/// The value of a date-time field, in the user's time zone.
fn input_timestamp(timestamp: Option<&String>, clock: PageClock) -> Option<String> {
    let input_text = |timestamp: &String| Timestamp::parse_rfc3339(timestamp).map(|at| clock.format_for_input(at));
    timestamp.map(|timestamp| input_text(timestamp).unwrap_or_else(|| timestamp.chars().take(16).collect()))
}

/// A hidden field with the time zone of the times in a form, by which the server interprets them. Like their labels and
/// values, it does not change after the form was rendered.
#[component]
fn TimeZoneInput(clock: PageClock) -> impl IntoView {
    let zone = untrack(|| clock.zone_name());
    let is_utc = zone == "UTC";
    view! { <input type="hidden" name="time_zone" value=zone disabled=is_utc/> }.into_erased()
}

#[cfg(test)]
mod tests {
    use leptos_router::params::ParamsMap;

    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn filter_url_has_the_parameters_of_the_api() {
        let mut params = ParamsMap::new();
        for (name, value) in [("actor", " ada "), ("action", "worker."), ("target", ""), ("since", "2024-01-02T03:04")]
        {
            params.insert(name.to_owned(), value.to_owned());
        }
        let filters = from_params::<AuditQuery>(&params).filters;
        assert_eq!((filters.actor.as_deref(), filters.target.as_deref()), (Some("ada"), None));
        assert!(filters.since.as_deref().is_some_and(|text| Timestamp::parse_rfc3339(text).is_some()), "{filters:?}");
        let address = audit_url("/admin/audit", &filters, Some("5.1.c".to_owned()));
        assert_eq!(address, "/admin/audit?actor=ada&action=worker.&since=2024-01-02T03%3A04%3A00Z&cursor=5.1.c");
    }
}
