//! The sentences of explanations for the API, in the client's language: those of the pages, and results with the
//! closest match.

use super::components::blocker_text::{blocker_reasons, describe_blocker, suggest_fix};
use super::components::match_summary::summary_text;
use super::components::reached_limit::describe_limit;
use super::locales::Language;
use super::prefs::Locale;
use crate::protocol::jobs::explain::{
    BlockerCode, BlockerView, ExplanationView, FitSummaryView, VerdictCode, WorkerExplanationView,
};

/// The maximum number of GPUs whose reasons are in a sentence; the explanation lists them all.
const MAX_REASONS: usize = 4;

/// Writes all sentences of an explanation.
pub fn write_explanation(explanation: &mut ExplanationView, locale: Locale) {
    let language = Language::of(locale);
    if let Some(summary) = &mut explanation.summary {
        write_summary(summary, locale);
    }
    for blocker in explanation.workers.iter_mut().flat_map(|worker| &mut worker.blockers) {
        write_blocker(blocker, language);
    }
    explanation.text = verdict_text(explanation, language);
}

/// Writes the sentence of a summary.
pub fn write_summary(summary: &mut FitSummaryView, locale: Locale) {
    summary.text = summary_sentence(summary, locale);
}

/// Returns the sentence of a summary.
pub fn summary_sentence(summary: &FitSummaryView, locale: Locale) -> String {
    summary_text(Language::of(locale), summary)
}

/// Why no worker matches a job with the target `local`.
pub fn no_local_worker(locale: Locale) -> &'static str {
    Language::of(locale).blockers.no_local_worker
}

fn write_blocker(blocker: &mut BlockerView, language: &'static Language) {
    let reasons = blocker_reasons(language, blocker);
    let more = if reasons.len() > MAX_REASONS { " …" } else { "" };
    let reasons = reasons
        .iter()
        .take(MAX_REASONS)
        .map(|reason| format!(" {}.", reason.replace('\u{a0}', " ").trim_end_matches('.')));
    blocker.text = std::iter::once(describe_blocker(language, blocker)).chain(reasons).collect::<String>() + more;
    blocker.change = suggest_fix(language, blocker);
}

fn verdict_text(explanation: &ExplanationView, language: &'static Language) -> String {
    let (blockers, explain) = (&language.blockers, &language.server_pages().explain);
    let closest = explanation.workers.first();
    let blocker = closest.and_then(|worker| worker.blockers.first());
    let with_closest = |sentence: crate::ui::locales::sentence::Phrase| {
        let name = closest.map_or("", |worker| worker.name.as_str());
        sentence.with(&[
            &name,
            &blocker.map_or("", |blocker| &blocker.text),
            &blocker.map_or("", |blocker| &blocker.change),
        ])
    };
    let until = || explanation.until.map(|until| until.to_string()).unwrap_or_default();
    match explanation.verdict {
        VerdictCode::NotWaiting => blockers.not_waiting.to_owned(),
        VerdictCode::Fits => blockers.fits.of(worker_name(explanation)),
        VerdictCode::BackOff => explain.back_off.of(until()),
        VerdictCode::Held => explain.held.of(until()),
        VerdictCode::Preempting => explain.preempting.with(&[&worker_name(explanation), &until()]),
        VerdictCode::Limited => describe_limit(blockers, explanation.limit.as_ref()),
        VerdictCode::Busy => with_closest(explain.busy),
        VerdictCode::WorkerUnavailable => with_closest(explain.worker_unavailable),
        VerdictCode::Unsatisfiable => match blocker.map(|blocker| blocker.code) {
            Some(BlockerCode::GpuCount | BlockerCode::Vram | BlockerCode::Accelerator) => {
                with_closest(explain.gpus_not_met)
            }
            _ => with_closest(explain.not_met),
        },
        VerdictCode::NoLocalWorker => blockers.no_local_worker.to_owned(),
        VerdictCode::NoWorkers => explain.no_workers.to_owned(),
    }
}

/// The name of the worker that the verdict is about.
fn worker_name(explanation: &ExplanationView) -> &str {
    let is_named = |worker: &&WorkerExplanationView| Some(&worker.worker_id) == explanation.worker_id.as_ref();
    explanation.workers.iter().find(is_named).map_or("", |worker| worker.name.as_str())
}
