//! The preview of a submit: which workers match, which do not and why, and the same submit as shell commands.

use leptos::prelude::*;

use super::blocker_text::{describe_blocker, suggest_fix};
use super::copy::Command;
use super::icon::Icon;
use super::match_summary::summary_text;
use super::problem_panel::ProblemNotice;
use super::status::StatusBadge;
use crate::protocol::jobs::explain::{ExplanationView, VerdictCode, WorkerExplanationView};
use crate::protocol::jobs::submit::SubmitPreviewResponse;
use crate::protocol::problem::Problem;
use crate::ui::backend::{DraftPreview, SubmitCommands};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::status_style::StatusStyle;

/// The maximum number of workers that are listed.
const MAX_WORKERS: usize = 30;

/// The panels beside the form. After a change of the form, the browser replaces the elements with `data-part`.
#[component]
pub(crate) fn SubmitPreview(outcome: Result<DraftPreview, Problem>, children: Children) -> impl IntoView {
    let words = &t().server_pages().train;
    let (preview, commands, problem) = match outcome {
        Ok(DraftPreview { preview, commands }) => (Some(preview), Some(commands), None),
        Err(problem) => (None, None, Some(problem)),
    };
    let explanation = preview.as_ref().map(|preview| preview.explanation.clone());
    view! {
        <div class="preview">
            <section class="panel" aria-labelledby="preview">
                <h2 id="preview" class="panel-head">{words.preview}</h2>
                <div class="preview-summary" role="status" data-part="summary">
                    {preview.map(|preview| view! { <PreviewSummary preview=preview/> })}
                    {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
                </div>
                <p class="preview-failed" role="alert" data-failed="" hidden=true>{words.preview_failed}</p>
                <div data-part="answers">{explanation.map(|explanation| view! { <WorkerMatches unlisted=explanation.unlisted_count() workers=explanation.workers/> })}</div>
                <div class="preview-actions">{children()}</div>
            </section>
            <section class="panel" aria-labelledby="commands">
                <h2 id="commands" class="panel-head">{words.commands}</h2>
                <div class="preview-commands">
                    <p class="field-hint">{words.commands_text}</p>
                    <div class="space-y-3" data-part="commands">{commands.map(|SubmitCommands { cli, curl }| view! {
                        <Command text=cli label="simpletuner"/>
                        <Command text=curl label="curl"/>
                    })}</div>
                </div>
            </section>
        </div>
    }
    .into_erased()
}

#[component]
fn PreviewSummary(preview: SubmitPreviewResponse) -> impl IntoView {
    let words = &t().server_pages().train;
    let explanation = &preview.explanation;
    let is_queued_after_others =
        !matches!(explanation.verdict, VerdictCode::Fits | VerdictCode::Unsatisfiable | VerdictCode::NoLocalWorker);
    let position = preview.queue_position.filter(|_| is_queued_after_others);
    view! {
        {explanation.summary.as_ref().map(|summary| view! { <p class="preview-count wrap-anywhere">{summary_text(t(), summary)}</p> })}
        <p class="text-muted">
            {describe_verdict(explanation)}
            {position.map(|position| format!(" {}", words.place.of(t().format_integer(position))))}
        </p>
    }
    .into_erased()
}

/// Returns the verdict as a sentence.
fn describe_verdict(explanation: &ExplanationView) -> String {
    let words = &t().server_pages().train;
    let chosen_worker =
        explanation.workers.iter().find(|worker| explanation.worker_id.as_ref() == Some(&worker.worker_id));
    match explanation.verdict {
        VerdictCode::Fits => words.fits.of(chosen_worker.map(|worker| worker.name.as_str()).unwrap_or_default()),
        VerdictCode::Limited => words.limited.to_owned(),
        VerdictCode::Busy => words.busy.to_owned(),
        // Workers that have never connected are not known to match.
        VerdictCode::WorkerUnavailable if !explanation.workers.iter().any(|worker| worker.matches) => {
            t().blockers.worker_unavailable.to_owned()
        }
        VerdictCode::WorkerUnavailable => words.worker_unavailable.to_owned(),
        VerdictCode::Unsatisfiable => words.unsatisfiable.to_owned(),
        VerdictCode::NoLocalWorker => t().blockers.no_local_worker.to_owned(),
        VerdictCode::NoWorkers => words.no_workers.to_owned(),
        // Not possible for a job that is not submitted yet.
        VerdictCode::NotWaiting | VerdictCode::BackOff | VerdictCode::Held | VerdictCode::Preempting => {
            explanation.text.clone()
        }
    }
}

#[component]
fn WorkerMatches(workers: Vec<WorkerExplanationView>, unlisted: u64) -> impl IntoView {
    let words = &t().server_pages().train;
    if workers.is_empty() {
        return ().into_erased();
    }
    let more = workers.len().saturating_sub(MAX_WORKERS) as u64 + unlisted;
    let rows =
        workers.into_iter().take(MAX_WORKERS).map(|worker| view! { <WorkerMatchRow worker=worker/> }).collect_view();
    view! {
        <div class="answers-box" tabindex="0" role="region" aria-label=words.answers>
            <table class="data answers">
                <caption class="sr-only">{words.answers}</caption>
                <thead><tr><th scope="col">{words.worker}</th><th scope="col">{words.answer}</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
            {(more > 0).then(|| view! { <p class="code-note">{words.more.of(more)}</p> })}
        </div>
    }
    .into_erased()
}

#[component]
fn WorkerMatchRow(worker: WorkerExplanationView) -> impl IntoView {
    let words = &t().server_pages().train;
    let style = if worker.fits {
        StatusStyle { class: "status status-good", glyph: Glyph::CheckCircle, label: words.takes }
    } else if worker.matches {
        StatusStyle { class: "status status-wait", glyph: Glyph::HalfCircle, label: words.waits }
    } else {
        StatusStyle { class: "status status-off", glyph: Glyph::CrossCircle, label: words.no_match }
    };
    let blocker_item = |blocker| view! { <li>{describe_blocker(t(), blocker)}" "{suggest_fix(t(), blocker)}</li> };
    let blockers = worker.blockers.iter().map(blocker_item).collect_view();
    view! {
        <tr>
            <th scope="row" class="wrap-anywhere">{worker.name}</th>
            <td>
                <StatusBadge style=style/>
                {(!worker.blockers.is_empty()).then(|| view! { <ul class="answer-why">{blockers}</ul> })}
            </td>
        </tr>
    }
    .into_erased()
}

/// A link that leaves the form for the page with the files of a configuration.
#[component]
pub(crate) fn ViewFilesLink(href: String, name: String) -> impl IntoView {
    let label = t().server_pages().train.look;
    view! {
        <a class="look-link" href=href aria-label=format!("{label}: {name}")><Icon glyph=Glyph::File/>{label}</a>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::WorkerId;
    use crate::domain::time::Timestamp;

    #[test]
    fn preview_results_scroll_by_keyboard() {
        let worker_id = WorkerId::new(Timestamp(1), [1; 10]);
        let worker =
            WorkerExplanationView { worker_id, name: "a".to_owned(), fits: true, matches: true, blockers: Vec::new() };
        let html = Owner::new().with(|| view! { <WorkerMatches workers=vec![worker] unlisted=0/> }.to_html());
        let name = t().server_pages().train.answers;
        assert!(html.contains(r#"tabindex="0" role="region""#) && html.contains(name), "{html}");
    }
}
