//! A configuration: the files of a revision, the differences between two, and the jobs that run them.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_query_map};

use super::configs::ConfigSummary;
use crate::domain::access::Permission;
use crate::domain::fuzzy::similar_names;
use crate::domain::text::escape;
use crate::protocol::configs::{ConfigDetail, RevisionView, RevisionsPage};
use crate::protocol::percent_encoding;
use crate::protocol::problem::Problem;
use crate::ui::backend::{SharedServerPageBackend, use_page_backend};
use crate::ui::components::code::FileText;
use crate::ui::components::diff_table::DiffTable;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::configs::changes::{ValueChange, value_changes};
use crate::ui::configs::format_for_display;
use crate::ui::erase::Erase;
use crate::ui::format::config_url;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::prefs::Prefs;

/// The maximum number of changed values that are listed.
const MAX_CHANGES: usize = 40;

/// What to show, as given in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ConfigPageQuery {
    name: String,
    revision: Option<u32>,
    against: Option<u32>,
    split: bool,
}

impl ConfigPageQuery {
    fn url(&self) -> String {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let view = self.split.then(|| "split".to_owned());
        let query = [("revision", number(self.revision)), ("against", number(self.against)), ("view", view)];
        config_url(&self.name) + &query_string(&query)
    }
}

struct Snapshot {
    page: RevisionsPage,
    shown: ConfigDetail,
    /// The revision to compare with.
    baseline: Option<ConfigDetail>,
}

/// Links to configurations with a similar name.
async fn similar_configs(page_backend: &SharedServerPageBackend, name: &str) -> AnyView {
    let all = page_backend.configs().await.map(|page| page.configs).unwrap_or_default();
    let similar = similar_names(name, all.iter().map(|config| config.name.as_str()));
    let link = |name: &str| view! { <li><a class="chip" href=config_url(name)>{name.to_owned()}</a></li> };
    (!similar.is_empty())
        .then(|| view! { <ul class="chips mt-4">{similar.into_iter().map(link).collect_view()}</ul> })
        .into_erased()
}

#[component]
pub(crate) fn ConfigPage() -> impl IntoView {
    let words = &t().server_pages().configs;
    // The router would decode it a second time.
    let path = use_location().pathname.get_untracked();
    let name = percent_encoding::decode(path.rsplit('/').next().unwrap_or_default());
    let page_query = use_query_map().with_untracked(|query| ConfigPageQuery {
        name,
        revision: query.get("revision").and_then(|number| number.parse().ok()),
        against: query.get("against").and_then(|number| number.parse().ok()),
        split: query.get("view").as_deref() == Some("split"),
    });
    let page_backend = use_page_backend();
    let shown = move || {
        let (page_backend, page_query) = (page_backend.clone(), page_query.clone());
        Suspend::new(async move {
            let found = async {
                let page = page_backend.revisions(page_query.name.clone()).await?;
                let revision = page_query.revision.or_else(|| page.revisions.first().map(|newest| newest.revision));
                let shown = page_backend.config(page_query.name.clone(), revision).await?;
                let baseline = match page_query.against {
                    Some(against) => Some(page_backend.config(page_query.name.clone(), Some(against)).await?),
                    None => None,
                };
                Ok::<_, Problem>(Snapshot { page, shown, baseline })
            };
            match found.await {
                Ok(snapshot) => view! { <ConfigContent page_query=page_query snapshot=snapshot/> }.into_erased(),
                Err(problem) => {
                    let similar = if problem.status == 404 {
                        similar_configs(&page_backend, &page_query.name).await
                    } else {
                        ().into_erased()
                    };
                    view! { <PageHeader title=page_query.name above=("/configs", words.title)/> <ProblemPanel problem=problem/> {similar} }
                        .into_erased()
                }
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn ConfigContent(page_query: ConfigPageQuery, snapshot: Snapshot) -> impl IntoView {
    let words = &t().server_pages().configs;
    let Snapshot { page, shown, baseline } = snapshot;
    let submits =
        use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit)) && !page.removed;
    let shows_edit =
        use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::ConfigEdit)) && !page.removed;
    let edit = format!("{}/edit", config_url(&page_query.name));
    let owner = shown.config.owner.clone();
    let can_edit = use_context::<Prefs>().is_some_and(|prefs| prefs.can_change_config(owner.as_deref()));
    let edit_label = if can_edit { words.edit } else { words.copy };
    let train = format!("/train{}", query_string(&[("config", Some(page_query.name.clone()))]));
    let page_query = ConfigPageQuery { revision: Some(shown.config.revision), ..page_query };
    let config = shown.config.clone();
    let heading = match &baseline {
        Some(earlier) => words.compared.with(&[&earlier.config.revision, &config.revision]),
        None => t().server_pages().train.revision.of(config.revision),
    };
    let removed = page.removed;
    view! {
        <PageHeader title=page_query.name.clone() above=("/configs", words.title)>
            {shows_edit.then(|| view! { <a class="btn btn-sm" href=edit><Icon glyph=Glyph::File/>{edit_label}</a> })}
            {submits.then(|| view! { <a class="btn btn-sm btn-primary" href=train><Icon glyph=Glyph::Train/>{words.train}</a> })}
        </PageHeader>
        {removed.then(|| view! { <div class="notice notice-warn"><Icon glyph=Glyph::Warning/><p>{words.removed}</p></div> })}
        <div class="config-grid">
            <div class="min-w-0 space-y-4">
                <div class="config-head">
                    <h2 class="text-base font-semibold">{heading}</h2>
                    {owner.map(|owner| view! { <p class="text-sm text-muted wrap-anywhere">{words.owner.of(owner)}</p> })}
                    {if baseline.is_some() { view! { <ViewSwitch page_query=page_query.clone()/> }.into_erased() } else { view! { <ConfigSummary config=config/> }.into_erased() }}
                </div>
                {match baseline {
                    Some(earlier) => view! { <RevisionDiff earlier=earlier shown=shown split=page_query.split/> }.into_erased(),
                    None => file_sections(shown).into_erased(),
                }}
            </div>
            <RevisionList page=page page_query=page_query/>
        </div>
    }
    .into_erased()
}

fn file_sections(shown: ConfigDetail) -> impl IntoView {
    let files = shown.bundle.files.into_iter().map(|(name, text)| {
        let size = t().format_bytes(text.len() as u64);
        let label = name.clone();
        view! {
            <section class="panel" aria-label=label>
                <h3 class="panel-head font-mono"><span class="grow wrap-anywhere">{name.clone()}</span><span class="panel-note">{size}</span></h3>
                <FileText name=name text=text/>
            </section>
        }
    });
    files.collect_view()
}

/// Links to the unified and the split view of the differences, and back to the text.
#[component]
fn ViewSwitch(page_query: ConfigPageQuery) -> impl IntoView {
    let words = &t().server_pages().configs;
    let link = |to: ConfigPageQuery, label: &'static str, is_current: bool| {
        view! { <li><a class="filter" href=to.url() aria-current=is_current.then_some("true")>{label}</a></li> }
    };
    let split = page_query.split;
    view! {
        <ul class="filters" aria-label=words.view>
            {link(ConfigPageQuery { split: false, ..page_query.clone() }, words.unified, !split)}
            {link(ConfigPageQuery { split: true, ..page_query.clone() }, words.split, split)}
            {link(ConfigPageQuery { against: None, split: false, ..page_query }, words.back, false)}
        </ul>
    }
    .into_erased()
}

/// The differences: first the values of JSON files, then the lines of each file.
#[component]
pub(super) fn RevisionDiff(earlier: ConfigDetail, shown: ConfigDetail, split: bool) -> impl IntoView {
    let words = &t().server_pages().configs;
    let (old, new) = (earlier.bundle.files, shown.bundle.files);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let display_text = |files: &BTreeMap<String, String>, name: &String| {
        files.get(name).map(|text| format_for_display(name, text)).unwrap_or_default()
    };
    let file_versions: Vec<_> =
        names.into_iter().map(|name| (name.clone(), display_text(&old, name), display_text(&new, name))).collect();
    let value_changes: Vec<(String, ValueChange)> = file_versions
        .iter()
        .flat_map(|(name, before, after)| {
            value_changes(before, after).into_iter().map(move |change| (name.clone(), change))
        })
        .collect();
    let changed = file_versions.into_iter().filter(|(_, before, after)| before != after).map(|(name, before, after)| {
        let change = if !old.contains_key(&name) { Some(words.came) } else if !new.contains_key(&name) { Some(words.went) } else { None };
        let label = name.clone();
        view! {
            <section class="panel" aria-label=label>
                <h3 class="panel-head font-mono"><span class="grow wrap-anywhere">{name.clone()}</span><span class="panel-note">{change}</span></h3>
                <DiffTable name=name old=before new=after split=split/>
            </section>
        }
    });
    let changed = changed.collect_view();
    if changed.is_empty() {
        return view! { <p class="panel panel-empty">{words.same}</p> }.into_erased();
    }
    view! { <ChangedValues changes=value_changes/> {changed} }.into_erased()
}

/// The changed values: "learning_rate 0.005 → 0.01".
#[component]
fn ChangedValues(changes: Vec<(String, ValueChange)>) -> impl IntoView {
    let words = &t().server_pages().configs;
    if changes.is_empty() {
        return ().into_erased();
    }
    let more = changes.len().saturating_sub(MAX_CHANGES) as u64;
    let side = |value: Option<String>| match value {
        Some(value) => view! { <code class="value">{escape(&value).into_owned()}</code> }.into_any(),
        None => view! { <span class="text-muted">{words.not_set}</span> }.into_any(),
    };
    let rows = changes.into_iter().take(MAX_CHANGES).map(|(file, ValueChange { path, before, after })| {
        let file = (file != "config.json").then(|| view! { <span class="row-sub">{file}</span> });
        view! {
            <tr>
                <th scope="row"><span class="font-mono wrap-anywhere">{escape(&path).into_owned()}</span>{file}</th>
                <td>{side(before)}</td>
                <td>{side(after)}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    view! {
        <section class="panel" aria-labelledby="values">
            <h3 id="values" class="panel-head">{words.values}</h3>
            <table class="data values" aria-labelledby="values">
                <thead><tr><th scope="col">{words.setting}</th><th scope="col">{words.before}</th><th scope="col">{words.after}</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
            {(more > 0).then(|| view! { <p class="code-note">{words.more.of(more)}</p> })}
        </section>
    }
    .into_erased()
}

/// All revisions, with a form to compare two of them.
#[component]
fn RevisionList(page: RevisionsPage, page_query: ConfigPageQuery) -> impl IntoView {
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
    let from = page_query.against.unwrap_or_else(|| if to > first { to - 1 } else { first });
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
        <section class="panel self-start min-w-0" aria-labelledby="revisions">
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
    let revision_url =
        ConfigPageQuery { revision: Some(number), against: None, split: false, ..page_query.clone() }.url();
    let changed = (number > first).then(|| {
        let name = format!("{}: {}", words.what_changed, t().server_pages().train.revision.of(number));
        let changes_url = ConfigPageQuery { revision: Some(number), against: Some(number - 1), ..page_query }.url();
        view! { <a class="quiet-link revision-changes" href=changes_url aria-label=name>{words.what_changed}</a> }
    });
    let active = (revision.active_jobs > 0)
        .then(|| view! { <span class="row-sub">{words.active.of(revision.active_jobs)}</span> });
    view! {
        <tr class=if is_current { "is-here" } else { "" }>
            <th scope="row">
                <a class="row-link revision-number" href=revision_url aria-current=is_current.then_some("true")>{number}</a>
                {changed}
            </th>
            <td><RelativeTime at=revision.created_at/> {revision.created_by.map(|by| view! { <span class="row-sub wrap-anywhere">{by}</span> })}</td>
            <td class="num">{t().format_integer(revision.jobs)}{active}</td>
        </tr>
    }
    .into_erased()
}
