//! Explains why a job is pending: in one sentence, and per worker.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::domain::access::Permission;
use crate::domain::ids::JobId;
use crate::domain::time::Timestamp;
use crate::protocol::jobs::explain::{BlockerCode, BlockerView, ExplanationView, VerdictCode, WorkerExplanationView};
use crate::protocol::topic::Topic;
use crate::ui::backend::SharedBackend;
use crate::ui::clock::use_clock;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::blocker_text::{blocker_reasons, describe_blocker, suggest_fix};
use crate::ui::components::icon::Icon;
use crate::ui::components::match_summary::summary_text;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::reached_limit::describe_limit;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::worker_link::WorkerNameLink;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::live_signal;
use crate::ui::prefs::Prefs;

/// Maximum number of workers that are shown before the user requests all.
const MAX_WORKERS: usize = 10;

/// The panel of a pending job.
#[component]
pub(super) fn JobExplanation(id: JobId, backend: SharedBackend) -> impl IntoView {
    let explanation = Resource::new(|| (), {
        let (backend, id) = (backend.clone(), id.clone());
        move |()| backend.job_explain(id.clone())
    });
    let shown = move || {
        let (backend, id) = (backend.clone(), id.clone());
        Suspend::new(async move {
            match explanation.await {
                Ok(first) => {
                    let topics = [Topic::Job(id.clone()), Topic::Jobs, Topic::Workers];
                    let job_id = id.clone();
                    let explanation = live_signal(first, &topics, move || backend.job_explain(job_id.clone()));
                    view! { <ExplanationPanel id=id explanation=explanation/> }.into_erased()
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn ExplanationPanel(id: JobId, explanation: RwSignal<ExplanationView>) -> impl IntoView {
    let words = &t().blockers;
    let clock = use_clock();
    let creates = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::AdminWorkers));
    let params = use_query_map();
    let shows_all = Memo::new(move |_| params.with(|params| params.get("workers").as_deref() == Some("all")));
    let workers = move || {
        let shows_all = shows_all.get();
        explanation.with(|explanation| {
            let shown_count =
                if shows_all { explanation.workers.len() } else { explanation.workers.len().min(MAX_WORKERS) };
            let rows = explanation.workers[..shown_count]
                .iter()
                .map(|worker| view! { <WorkerMatchRows worker=worker.clone()/> });
            let rows = rows.collect_view();
            let listed_rest = (explanation.workers.len() - shown_count) as u64;
            let rest = listed_rest + explanation.unlisted_count();
            let more = (rest > 0).then(|| {
                let text = words.more.of(rest);
                let href = format!("/jobs/{id}?workers=all#why");
                let line = if listed_rest > 0 {
                    view! { <a class="quiet-link" href=href>{text}</a> }.into_erased()
                } else {
                    view! { <span class="text-muted">{text}</span> }.into_erased()
                };
                view! { <p class="panel-foot">{line}</p> }
            });
            let table = (!explanation.workers.is_empty()).then(|| {
                view! {
                    <table class="data">
                        <caption class="sr-only">{words.caption}</caption>
                        <thead>
                            <tr>
                                <th scope="col">{words.worker}</th>
                                <th scope="col">{words.reason}</th>
                                <th scope="col" class="max-md:hidden">{words.what_helps}</th>
                            </tr>
                        </thead>
                        <tbody>{rows}</tbody>
                    </table>
                }
            });
            view! { {table} {more} }.into_erased()
        })
    };
    let summary = Memo::new(move |_| explanation.with(|explanation| explanation.summary.clone()));
    let create = move || {
        let has_no_workers = explanation.with(|explanation| explanation.verdict == VerdictCode::NoWorkers);
        (has_no_workers && creates)
            .then(|| view! { <ButtonLink href="/admin/workers/new" label=t().workers.create glyph=Glyph::Plus/> })
    };
    view! {
        <section class="panel" aria-labelledby="why">
            <h2 id="why" class="panel-head">{words.title}</h2>
            <div class="why-verdict">
                <div>
                    <p aria-live="polite">{move || explanation.with(|explanation| describe_verdict(explanation, clock.now()))}</p>
                    {move || summary.get().map(|summary| view! { <p class="text-muted wrap-anywhere">{summary_text(t(), &summary)}</p> })}
                </div>
                {create}
            </div>
            {workers}
        </section>
    }
    .into_erased()
}

/// The name of the worker that the verdict is about.
fn worker_name(explanation: &ExplanationView) -> &str {
    let is_named = |worker: &&WorkerExplanationView| Some(&worker.worker_id) == explanation.worker_id.as_ref();
    explanation.workers.iter().find(is_named).map_or("", |worker| worker.name.as_str())
}

fn describe_verdict(explanation: &ExplanationView, now: Timestamp) -> String {
    let words = &t().blockers;
    let remaining = |until: Option<Timestamp>| t().format_duration(until.unwrap_or(now) - now);
    match explanation.verdict {
        VerdictCode::NotWaiting => words.not_waiting.to_owned(),
        VerdictCode::Fits => words.fits.of(worker_name(explanation)),
        VerdictCode::Preempting => words.preempting.with(&[&worker_name(explanation), &remaining(explanation.until)]),
        VerdictCode::BackOff => words.back_off.of(remaining(explanation.until)),
        VerdictCode::Held => words.held.of(remaining(explanation.until)),
        VerdictCode::Limited => describe_limit(words, explanation.limit.as_ref()),
        VerdictCode::Busy => words.busy.to_owned(),
        VerdictCode::WorkerUnavailable => words.worker_unavailable.to_owned(),
        VerdictCode::Unsatisfiable => words.unsatisfiable.to_owned(),
        VerdictCode::NoLocalWorker => words.no_local_worker.to_owned(),
        VerdictCode::NoWorkers => words.no_workers.to_owned(),
    }
}

/// One row per blocker, with what would help.
#[component]
fn WorkerMatchRows(worker: WorkerExplanationView) -> impl IntoView {
    let words = &t().blockers;
    let name = |note| {
        let (id, name) = (worker.worker_id.clone(), worker.name.clone());
        view! { <WorkerNameLink id=id name=name/> <span class="row-sub">{note}</span> }
    };
    let Some((first, others)) = worker.blockers.split_first() else {
        return view! {
            <tr>
                <th scope="row">{name("")}</th>
                <td colspan="2"><span class="why-rule is-pass"><Icon glyph=Glyph::Check/>{words.all_requirements_met}</span></td>
            </tr>
        }
        .into_erased();
    };
    let count = worker.blockers.len().to_string();
    // The properties of a worker that has never connected are unknown.
    let is_unknown = worker.blockers.iter().any(|blocker| blocker.code == BlockerCode::NeverConnected);
    let rest = if is_unknown { "" } else { words.rest_fits };
    view! {
        <tr>
            <th scope="row" rowspan=count>{name(rest)}</th>
            {blocker_cells(first)}
        </tr>
        {others.iter().map(|blocker| view! { <tr class="is-more">{blocker_cells(blocker)}</tr> }).collect_view()}
    }
    .into_erased()
}

/// The cells with a blocker and with what would help, which is below the blocker on small screens.
fn blocker_cells(blocker: &BlockerView) -> impl IntoView + use<> {
    let reasons = blocker_reasons(t(), blocker)
        .into_iter()
        .map(|reason| view! { <span class="row-sub wrap-anywhere">{reason}</span> });
    view! {
        <td>
            <span class="why-rule">
                <Icon glyph=Glyph::Cross/>
                <span class="min-w-0 wrap-anywhere">
                    {describe_blocker(t(), blocker)}
                    {reasons.collect_view()}
                    <span class="row-sub md:hidden">{suggest_fix(t(), blocker)}</span>
                </span>
            </span>
        </td>
        <td class="text-muted max-md:hidden">{suggest_fix(t(), blocker)}</td>
    }
    .into_erased()
}
