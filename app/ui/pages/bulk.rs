//! Confirms an action on several workers or jobs, and shows its effect on each. The lists link here
//! ([`crate::ui::components::row_selection`]).

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::not_found::not_found_problem;
use crate::domain::access::Permission;
use crate::domain::ids::{JobId, WorkerId};
use crate::protocol::bulk::MAX_BULK_IDS;
use crate::protocol::jobs::JobView;
use crate::protocol::status::{BulkAction, BulkTarget};
use crate::protocol::workers::WorkerView;
use crate::ui::backend::use_page_backend;
use crate::ui::bulk::{BulkEffect, form_url, job_name, list_url};
use crate::ui::bulk_action::{BulkActionRow, bulk_action_row};
use crate::ui::components::drain::DrainOptions;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::status::JobBadge;
use crate::ui::components::worker_badge::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;
use crate::ui::safe_url::SafeUrl;

/// The action and its targets, as given in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BulkQuery {
    action: BulkAction,
    ids: Vec<String>,
    back: String,
}

impl BulkQuery {
    /// Returns none if the action does not exist or does not apply to this list.
    fn from_params(target: BulkTarget, params: &ParamsMap) -> Option<Self> {
        let action = params.get("action").and_then(|name| BulkAction::parse(&name))?;
        let mut ids = params.get_all("id").unwrap_or_default();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(MAX_BULK_IDS);
        let back = params.get("back").filter(|back| back.starts_with('/'));
        let back = SafeUrl::from_data(back.as_deref().unwrap_or(list_url(target))).into_string();
        (action.target() == target).then_some(Self { action, ids, back })
    }
}

/// A worker or job in the table.
struct BulkRow {
    id: String,
    name: String,
    href: String,
    badge: AnyView,
    effect: BulkEffect,
}

/// Confirms an action on workers.
#[component]
pub(crate) fn WorkersBulkPage() -> impl IntoView {
    let Some(request) = use_query_map().with_untracked(|params| BulkQuery::from_params(BulkTarget::Workers, params))
    else {
        return view! { <ProblemPanel problem=not_found_problem()/> }.into_erased();
    };
    let page_backend = use_page_backend();
    let ids: Vec<WorkerId> = request.ids.iter().filter_map(|id| WorkerId::parse(id).ok()).collect();
    let workers = Resource::new(|| (), move |()| page_backend.workers_by_ids(ids.clone()));
    let to_row = |action, worker: WorkerView| BulkRow {
        id: worker.id.to_string(),
        name: worker.name.clone(),
        href: format!("/admin/workers/{}", worker.id),
        effect: BulkEffect::for_worker(action, &worker),
        badge: view! { <WorkerBadge worker=worker/> }.into_erased(),
    };
    let shown = move || {
        let request = request.clone();
        Suspend::new(async move {
            match workers.await {
                Ok(found) => {
                    confirm_page(&request, found.into_iter().map(|worker| to_row(request.action, worker)).collect())
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

/// Confirms an action on jobs.
#[component]
pub(crate) fn JobsBulkPage() -> impl IntoView {
    let Some(request) = use_query_map().with_untracked(|params| BulkQuery::from_params(BulkTarget::Jobs, params))
    else {
        return view! { <ProblemPanel problem=not_found_problem()/> }.into_erased();
    };
    let page_backend = use_page_backend();
    let ids: Vec<JobId> = request.ids.iter().filter_map(|id| JobId::parse(id).ok()).collect();
    let jobs = Resource::new(|| (), move |()| page_backend.jobs_by_ids(ids.clone()));
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let cancels_all = prefs.has_permission(Permission::JobCancelAll);
    let user_name = prefs.session.map(|session| session.name);
    let to_row = move |action, job: JobView| BulkRow {
        id: job.job_id.to_string(),
        name: job_name(&job),
        href: format!("/jobs/{}", job.job_id),
        effect: BulkEffect::for_job(action, &job, cancels_all || user_name.as_ref() == Some(&job.submitted_by)),
        badge: view! { <JobBadge status=job.status/> }.into_erased(),
    };
    let shown = move || {
        let (request, to_row) = (request.clone(), to_row.clone());
        Suspend::new(async move {
            match jobs.await {
                Ok(found) => confirm_page(&request, found.into_iter().map(|job| to_row(request.action, job)).collect()),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

/// Lists the workers or jobs, with a form for those that the action would change.
fn confirm_page(request: &BulkQuery, lines: Vec<BulkRow>) -> AnyView {
    let BulkQuery { action, ids, back } = request;
    let words = &t().server_pages().bulk;
    let changed: Vec<String> =
        lines.iter().filter(|line| line.effect.is_change()).map(|line| line.id.clone()).collect();
    let BulkActionRow { glyph, confirmation, .. } = bulk_action_row(*action);
    let texts = (confirmation.texts)(words);
    let count = texts.count.of(changed.len() as u64);
    let has_changes = !changed.is_empty();
    let missing = (ids.len() - lines.len()) as u64;
    let above = match action.target() {
        BulkTarget::Workers => t().workers.title,
        BulkTarget::Jobs => t().jobs.title,
    };
    let hidden = changed.into_iter().map(|id| view! { <input type="hidden" name="id" value=id/> }).collect_view();
    let confirm =
        has_changes.then(|| view! { <button class=confirmation.class><Icon glyph=glyph/>{count.clone()}</button> });
    view! {
        <PageHeader title=if has_changes { count.clone() } else { words.nothing.to_owned() } above=(back.clone(), above)/>
        <div class="panel">
            {(!lines.is_empty()).then(|| effect_table(*action, lines))}
            <form class="bulk-question" method="post" action=form_url(*action)>
                {(missing > 0).then(|| view! { <p class="text-muted">{words.missing.of(missing)}</p> })}
                <p>{if has_changes { texts.consequence } else { words.nothing_text }}</p>
                {hidden}
                {(has_changes && *action == BulkAction::Drain).then(|| view! { <DrainOptions/> })}
                <input type="hidden" name="back" value=back.clone()/>
                <div class="form-actions">
                    {confirm}
                    <a class="btn btn-ghost" href=back.clone()>{words.keep}</a>
                </div>
            </form>
        </div>
    }
    .into_erased()
}

fn effect_table(action: BulkAction, lines: Vec<BulkRow>) -> AnyView {
    let words = t();
    let (caption, name) = match action.target() {
        BulkTarget::Workers => (words.workers.title, words.workers.worker),
        BulkTarget::Jobs => (words.jobs.title, words.jobs.job),
    };
    let row = |line: BulkRow| {
        let class = (!line.effect.is_change()).then_some("text-muted");
        view! {
            <tr class=class>
                <th scope="row"><a class="row-link" href=line.href>{line.name}</a></th>
                <td class="max-md:hidden"><span class="flex flex-wrap gap-x-3">{line.badge}</span></td>
                <td>{line.effect.describe(&t().server_pages().bulk)}</td>
            </tr>
        }
    };
    view! {
        <table class="data">
            <caption class="sr-only">{caption}</caption>
            <thead>
                <tr>
                    <th scope="col">{name}</th>
                    <th scope="col" class="max-md:hidden">{words.workers.status}</th>
                    <th scope="col">{words.server_pages().bulk.happens}</th>
                </tr>
            </thead>
            <tbody>{lines.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_query(query: &[(&'static str, &str)]) -> Option<BulkQuery> {
        let mut params = ParamsMap::new();
        for (name, value) in query {
            params.insert(*name, (*value).to_owned());
        }
        BulkQuery::from_params(BulkTarget::Workers, &params)
    }

    #[test]
    fn url_contains_the_action_and_its_targets() {
        let found = parse_query(&[
            ("action", "drain"),
            ("id", "w_2"),
            ("id", "w_1"),
            ("id", "w_2"),
            ("back", "/admin/workers?q=a"),
        ]);
        let ids = vec!["w_1".to_owned(), "w_2".to_owned()];
        assert_eq!(found, Some(BulkQuery { action: BulkAction::Drain, ids, back: "/admin/workers?q=a".to_owned() }));
        for invalid in [&[][..], &[("action", "cancel")], &[("action", "explode")]] {
            assert_eq!(parse_query(invalid), None, "{invalid:?}");
        }
        for foreign_url in ["javascript:x", "https://evil.example"] {
            assert_eq!(
                parse_query(&[("action", "drain"), ("back", foreign_url)]).map(|query| query.back).as_deref(),
                Some("/admin/workers")
            );
        }
        let back = parse_query(&[("action", "drain"), ("back", "//evil.example")]).map(|query| query.back);
        assert_eq!(back.as_deref(), Some("#"));
    }
}
