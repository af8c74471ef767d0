//! A configuration: the files of a revision, the differences between two, and the jobs that run them.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;

use super::config_query::ConfigPageQuery;
use super::config_revisions::{OtherConfig, RevisionList};
use super::configs::ConfigSummary;
use crate::domain::access::Permission;
use crate::domain::fuzzy::similar_names;
use crate::domain::text::escape;
use crate::protocol::configs::{ConfigDetail, RevisionsPage};
use crate::protocol::problem::Problem;
use crate::ui::backend::{SharedServerPageBackend, use_page_backend};
use crate::ui::components::code::FileText;
use crate::ui::components::diff_table::DiffTable;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
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

struct Snapshot {
    page: RevisionsPage,
    shown: ConfigDetail,
    baseline: Option<Baseline>,
    /// The names of all configurations.
    names: Vec<String>,
}

/// What the shown revision is compared with.
struct Baseline {
    detail: ConfigDetail,
    /// The revisions of the other configuration, if it is another one.
    other_revisions: Vec<u32>,
}

/// Reads what the address names. Of another configuration that lacks the revision, the newest one is meant: its reader
/// has selected another name.
async fn read_snapshot(page_backend: &SharedServerPageBackend, query: &ConfigPageQuery) -> Result<Snapshot, Problem> {
    let numbers = |page: &RevisionsPage| page.revisions.iter().map(|revision| revision.revision).collect::<Vec<_>>();
    let page = page_backend.revisions(query.name.clone()).await?;
    let revision = query.revision.or_else(|| numbers(&page).first().copied());
    let shown = page_backend.config(query.name.clone(), revision).await?;
    let baseline = match (&query.with, query.against) {
        (None, None) => None,
        (None, Some(against)) => {
            let detail = page_backend.config(query.name.clone(), Some(against)).await?;
            Some(Baseline { detail, other_revisions: Vec::new() })
        }
        (Some(other), against) => {
            let other_revisions = numbers(&page_backend.revisions(other.clone()).await?);
            let known = against.filter(|against| other_revisions.contains(against));
            let revision = known.or_else(|| other_revisions.first().copied());
            Some(Baseline { detail: page_backend.config(other.clone(), revision).await?, other_revisions })
        }
    };
    let names = page_backend.configs().await?.configs.into_iter().map(|config| config.name).collect();
    Ok(Snapshot { page, shown, baseline, names })
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
    let page_query = ConfigPageQuery::from_address();
    let page_backend = use_page_backend();
    let shown = move || {
        let (page_backend, page_query) = (page_backend.clone(), page_query.clone());
        Suspend::new(async move {
            match read_snapshot(&page_backend, &page_query).await {
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
    let Snapshot { page, shown, baseline, names } = snapshot;
    let submits =
        use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit)) && !page.removed;
    let has_config_edit = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::ConfigEdit));
    let shows_edit = has_config_edit && !page.removed;
    let edit = format!("{}/edit", config_url(&page_query.name));
    let owner = shown.config.owner.clone();
    let can_edit = use_context::<Prefs>().is_some_and(|prefs| prefs.can_change_config(owner.as_deref()));
    let edit_label = if can_edit { words.edit } else { words.copy };
    let train = format!("/train{}", query_string(&[("config", Some(page_query.name.clone()))]));
    let page_query = ConfigPageQuery { revision: Some(shown.config.revision), ..page_query };
    let config = shown.config.clone();
    let heading = match (&baseline, &page_query.with) {
        (Some(Baseline { detail, .. }), Some(other)) => {
            words.compared_with.with(&[other, &detail.config.revision, &config.name, &config.revision])
        }
        (Some(Baseline { detail, .. }), None) => words.compared.with(&[&detail.config.revision, &config.revision]),
        (None, _) => t().server_pages().train.revision.of(config.revision),
    };
    let duplicate = has_config_edit.then(|| {
        let query = [("from", page_query.name.clone()), ("revision", config.revision.to_string())];
        let href = format!("/configs/new{}", query_string(&query));
        view! { <a class="btn btn-sm" href=href><Icon glyph=Glyph::Copy/>{words.duplicate}</a> }
    });
    let delete = (shows_edit && can_edit).then(|| {
        let href = format!("{}/delete", config_url(&page_query.name));
        view! { <a class="btn btn-sm" href=href><Icon glyph=Glyph::Trash/>{words.delete}</a> }
    });
    let other_revisions = baseline.as_ref().map(|baseline| baseline.other_revisions.clone()).unwrap_or_default();
    let against = baseline.as_ref().map(|baseline| baseline.detail.config.revision);
    let page_query = ConfigPageQuery { against, ..page_query };
    let removed = page.removed;
    view! {
        <PageHeader title=page_query.name.clone() above=("/configs", words.title)>
            {delete}
            {duplicate}
            {shows_edit.then(|| view! { <a class="btn btn-sm" href=edit><Icon glyph=Glyph::File/>{edit_label}</a> })}
            {submits.then(|| view! { <a class="btn btn-sm btn-primary" href=train><Icon glyph=Glyph::Train/>{words.train}</a> })}
        </PageHeader>
        {removed.then(|| view! { <div class="notice notice-warn"><Icon glyph=Glyph::Warning/><p>{words.removed}</p></div> })}
        <div class="config-grid">
            <div class="min-w-0 space-y-4">
                <div class="config-head">
                    <h2 class="text-base font-semibold wrap-anywhere">{heading}</h2>
                    {owner.map(|owner| view! { <p class="text-sm text-muted wrap-anywhere">{words.owner.of(owner)}</p> })}
                    {if baseline.is_some() { view! { <ViewSwitch page_query=page_query.clone()/> }.into_erased() } else { view! { <ConfigSummary config=config/> }.into_erased() }}
                </div>
                {match baseline {
                    Some(baseline) => view! { <RevisionDiff earlier=baseline.detail shown=shown split=page_query.split/> }.into_erased(),
                    None => file_sections(shown).into_erased(),
                }}
            </div>
            <div class="min-w-0 space-y-4 self-start">
                <RevisionList page=page page_query=page_query.clone()/>
                <OtherConfig names=names revisions=other_revisions page_query=page_query/>
            </div>
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
            {link(page_query.alone(), words.back, false)}
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
