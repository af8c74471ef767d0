//! Whether to do the same to several workers or jobs: each is named with what will become of it. The lists lead here
//! ([`crate::ui::components::picking`]), and any address that names some.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::not_found::no_such;
use super::{Skeleton, use_desk};
use crate::domain::access::Permission;
use crate::domain::ids::{JobId, WorkerId};
use crate::protocol::bulk::MOST;
use crate::protocol::queue::JobView;
use crate::protocol::status::BulkAction;
use crate::protocol::workers::WorkerView;
use crate::ui::bulk::{Fate, Listed, asked, form, job_name};
use crate::ui::components::drain::DrainTerms;
use crate::ui::components::failure::Failure;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::{JobBadge, WorkerBadge};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;
use crate::ui::safe_url::SafeUrl;

/// What the address asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    action: BulkAction,
    ids: Vec<String>,
    back: String,
}

impl Asked {
    /// None if it is nothing that is done to what this list has.
    fn of(listed: Listed, params: &ParamsMap) -> Option<Self> {
        let action = params.get("action").and_then(|word| BulkAction::parse(&word))?;
        let mut ids = params.get_all("id").unwrap_or_default();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(MOST);
        let back = params.get("back").filter(|back| back.starts_with('/'));
        let back = SafeUrl::from_data(back.as_deref().unwrap_or(listed.path())).into_string();
        (Listed::of(action) == listed).then_some(Self { action, ids, back })
    }
}

/// One of them.
struct Line {
    id: String,
    name: String,
    href: String,
    badge: AnyView,
    fate: Fate,
}

/// Asks about workers.
#[component]
pub(crate) fn WorkersBulkPage() -> impl IntoView {
    let Some(asked) = use_query_map().with_untracked(|params| Asked::of(Listed::Workers, params)) else {
        return view! { <Failure problem=no_such()/> }.erased();
    };
    let desk = use_desk();
    let ids: Vec<WorkerId> = asked.ids.iter().filter_map(|id| WorkerId::parse(id).ok()).collect();
    let workers = Resource::new(|| (), move |()| desk.workers_named(ids.clone()));
    let line = |action, worker: WorkerView| Line {
        id: worker.id.to_string(),
        name: worker.name.clone(),
        href: format!("/admin/workers/{}", worker.id),
        fate: Fate::of_worker(action, &worker),
        badge: view! { <WorkerBadge worker=worker/> }.erased(),
    };
    let shown = move || {
        let asked = asked.clone();
        Suspend::new(async move {
            match workers.await {
                Ok(found) => question(&asked, found.into_iter().map(|worker| line(asked.action, worker)).collect()),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

/// Asks about jobs.
#[component]
pub(crate) fn JobsBulkPage() -> impl IntoView {
    let Some(asked) = use_query_map().with_untracked(|params| Asked::of(Listed::Jobs, params)) else {
        return view! { <Failure problem=no_such()/> }.erased();
    };
    let desk = use_desk();
    let ids: Vec<JobId> = asked.ids.iter().filter_map(|id| JobId::parse(id).ok()).collect();
    let jobs = Resource::new(|| (), move |()| desk.jobs_named(ids.clone()));
    let prefs = use_context::<Prefs>().unwrap_or_default();
    let cancels_all = prefs.may(Permission::JobCancelAll);
    let reader = prefs.session.map(|session| session.name);
    let line = move |action, job: JobView| Line {
        id: job.job_id.to_string(),
        name: job_name(&job),
        href: format!("/jobs/{}", job.job_id),
        fate: Fate::of_job(action, &job, cancels_all || reader.as_ref() == Some(&job.submitted_by)),
        badge: view! { <JobBadge status=job.status/> }.erased(),
    };
    let shown = move || {
        let (asked, line) = (asked.clone(), line.clone());
        Suspend::new(async move {
            match jobs.await {
                Ok(found) => question(&asked, found.into_iter().map(|job| line(asked.action, job)).collect()),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

/// Names them, and asks about those that it would change.
fn question(asked_for: &Asked, lines: Vec<Line>) -> AnyView {
    let Asked { action, ids, back } = asked_for;
    let words = &t().plain().bulk;
    let changed: Vec<String> = lines.iter().filter(|line| line.fate.changes()).map(|line| line.id.clone()).collect();
    let count = asked(words, *action).of(changed.len() as u64);
    let any = !changed.is_empty();
    let missing = (ids.len() - lines.len()) as u64;
    let above = match Listed::of(*action) {
        Listed::Workers => t().workers.title,
        Listed::Jobs => t().jobs.title,
    };
    let hidden = changed.into_iter().map(|id| view! { <input type="hidden" name="id" value=id/> }).collect_view();
    let (class, glyph) = look(*action);
    let confirm = any.then(|| view! { <button class=class><Icon glyph=glyph/>{count.clone()}</button> });
    view! {
        <PageHead title=if any { count.clone() } else { words.nothing.to_owned() } above=(back.clone(), above)/>
        <div class="panel">
            {(!lines.is_empty()).then(|| table(*action, lines))}
            <form class="bulk-question" method="post" action=form(*action)>
                {(missing > 0).then(|| view! { <p class="text-muted">{words.missing.of(missing)}</p> })}
                <p>{if any { consequence(*action) } else { words.nothing_text }}</p>
                {hidden}
                {(any && *action == BulkAction::Drain).then(|| view! { <DrainTerms/> })}
                <input type="hidden" name="back" value=back.clone()/>
                <div class="form-actions">
                    {confirm}
                    <a class="btn btn-ghost" href=back.clone()>{words.keep}</a>
                </div>
            </form>
        </div>
    }
    .erased()
}

fn table(action: BulkAction, lines: Vec<Line>) -> AnyView {
    let words = t();
    let (caption, name) = match Listed::of(action) {
        Listed::Workers => (words.workers.title, words.workers.worker),
        Listed::Jobs => (words.jobs.title, words.jobs.job),
    };
    let row = |line: Line| {
        let class = (!line.fate.changes()).then_some("text-muted");
        view! {
            <tr class=class>
                <th scope="row"><a class="row-link" href=line.href>{line.name}</a></th>
                <td class="max-md:hidden"><span class="flex flex-wrap gap-x-3">{line.badge}</span></td>
                <td>{line.fate.said(&t().plain().bulk)}</td>
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
                    <th scope="col">{words.plain().bulk.happens}</th>
                </tr>
            </thead>
            <tbody>{lines.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
    .erased()
}

/// What follows from it.
fn consequence(action: BulkAction) -> &'static str {
    let words = &t().plain().bulk;
    match action {
        BulkAction::Drain => words.drain_text,
        BulkAction::Resume => "",
        BulkAction::Delete => words.delete_text,
        BulkAction::Cancel => words.cancel_text,
        BulkAction::Retry => words.retry_text,
    }
}

/// How the button looks that does it.
fn look(action: BulkAction) -> (&'static str, Glyph) {
    match action {
        BulkAction::Drain => ("btn btn-primary", Glyph::Drain),
        BulkAction::Resume | BulkAction::Retry => ("btn btn-primary", Glyph::Play),
        BulkAction::Delete => ("btn btn-error", Glyph::Trash),
        BulkAction::Cancel => ("btn btn-error", Glyph::StopCircle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &[(&'static str, &str)]) -> Option<Asked> {
        let mut params = ParamsMap::new();
        for (name, value) in query {
            params.insert(*name, (*value).to_owned());
        }
        Asked::of(Listed::Workers, &params)
    }

    #[test]
    fn an_address_names_what_is_done_to_what() {
        let found =
            asked(&[("action", "drain"), ("id", "w_2"), ("id", "w_1"), ("id", "w_2"), ("back", "/admin/workers?q=a")]);
        let ids = vec!["w_1".to_owned(), "w_2".to_owned()];
        assert_eq!(found, Some(Asked { action: BulkAction::Drain, ids, back: "/admin/workers?q=a".to_owned() }));
        for nothing in [&[][..], &[("action", "cancel")], &[("action", "explode")]] {
            assert_eq!(asked(nothing), None, "{nothing:?}");
        }
        for elsewhere in ["javascript:x", "https://evil.example"] {
            assert_eq!(
                asked(&[("action", "drain"), ("back", elsewhere)]).map(|asked| asked.back).as_deref(),
                Some("/admin/workers")
            );
        }
        let back = asked(&[("action", "drain"), ("back", "//evil.example")]).map(|asked| asked.back);
        assert_eq!(back.as_deref(), Some("#"));
    }
}
