//! The first panel of a job's page: its status and progress.

use leptos::prelude::*;

use super::failure_reason::{FailureReason, log_line_url};
use super::job_charts::nan_text;
use super::progress_bar::LargeProgressBar;
use super::time::Elapsed;
use crate::domain::time::Millis;
use crate::protocol::jobs::{JobView, ProgressView};
use crate::protocol::status::JobStatus;
use crate::ui::empty_state::JobStage;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::job_status::status_hint;
use crate::ui::locales::words::Job;
use crate::ui::losses::job_error;

/// The progress if there is some, otherwise what the job waits for or how it ended.
#[component]
pub(crate) fn JobProgressPanel(detail: Memo<JobView>) -> impl IntoView {
    let words = &t().job;
    let percent =
        Signal::derive(move || detail.with(|detail| detail.progress.as_ref().and_then(|progress| progress.percent)));
    let ended = Signal::derive(move || detail.with(|detail| detail.status.is_terminal()));
    // Without progress, an empty progress bar and empty readings would only distract from the text.
    let is_text_only =
        Memo::new(move |_| detail.with(|detail| detail.progress.is_none() && !JobStage::new(detail).has_dial()));
    let nan_since = Memo::new(move |_| detail.with(|detail| detail.progress.as_ref()?.loss_nan_since));
    let is_empty = Memo::new(move |_| is_text_only.get() && detail.with(|detail| has_no_text(words, detail)));
    let label = detail.with_untracked(|detail| words.progress_of.of(&detail.config_name));
    view! {
        <section class="panel job-head" aria-label=words.progress hidden=move || is_empty.get()>
            <div class="job-head-top">
                {move || (!is_text_only.get()).then(|| view! {
                    <p class="job-percent">{move || percent.get().map_or_else(|| "–".to_owned(), |percent| t().format_percent(percent))}</p>
                })}
                <p class="job-note">
                    {move || detail.with(|detail| status_note(words, detail))}
                    {move || nan_since.get().map(|step| view! { " "<strong>{nan_text(step)}</strong> })}
                </p>
            </div>
            {move || (!is_text_only.get()).then(|| view! {
                <LargeProgressBar percent=percent label=label.clone() ended=ended/>
                <dl class="readings">{move || detail.with(|detail| progress_readings(words, detail))}</dl>
            })}
            {move || detail.with(failure_reason).map(|(error, log)| view! { <FailureReason error=error log=log/> })}
        </section>
    }
    .into_erased()
}

/// Returns the error of a job, and the URL of its line in the log.
fn failure_reason(job: &JobView) -> Option<(String, Option<String>)> {
    let log = job.error_line.map(|line| log_line_url(&job.job_id, job.attempt, line));
    Some((job_error(job)?, log))
}

fn has_no_text(words: &Job, job: &JobView) -> bool {
    job.error.is_none() && status_note(words, job).is_empty()
}

fn status_note(words: &Job, job: &JobView) -> String {
    let hint = status_hint(words, job.status);
    if job.status == JobStatus::Queued {
        return if job.fits_none {
            // The panel with the reasons begins with this.
            String::new()
        } else {
            let position = match job.queue_position {
                None => words.waiting_for.to_owned(),
                Some(1) => words.next_in_line.to_owned(),
                Some(position) => words.position.of(t().format_integer(position)),
            };
            t().common.sentences.with(&[&position, &hint])
        };
    }
    let stage = job.progress.as_ref().filter(|_| job.status.is_at_work()).and_then(|progress| progress.stage.clone());
    stage.unwrap_or_else(|| hint.to_owned())
}

fn progress_readings(words: &'static Job, job: &JobView) -> impl IntoView + use<> {
    let progress = job.progress.clone().unwrap_or_default();
    let has_progress = job.progress.is_some();
    let step = match progress.total_steps {
        Some(total) => t().common.of.with(&[&t().format_integer(progress.step), &t().format_integer(total)]),
        None => t().format_integer(progress.step),
    };
    let dash = || "–".to_owned();
    #[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
    let remaining =
        progress.eta_seconds.filter(|_| !job.status.is_terminal()).map(|seconds| Millis::from_secs(seconds as i64));
    let elapsed = job.started_at.map(|from| view! { <Elapsed from=from until=job.ended_at/> });
    view! {
        <ProgressReading name=words.step value=if has_progress { step } else { dash() }/>
        <ProgressReading name=words.loss value=loss_text(&progress).unwrap_or_else(dash)/>
        <ProgressReading name=words.learning_rate value=progress.learning_rate.map_or_else(dash, |value| t().format_number(value))/>
        <ProgressReading name=words.epoch value=progress.epoch.map_or_else(dash, |value| t().format_number(value))/>
        <ProgressReading name=words.remaining value=remaining.map_or_else(dash, |span| t().format_duration(span))/>
        <div><dt>{words.elapsed}</dt><dd>{elapsed.map_or_else(|| dash().into_erased(), Erase::into_erased)}</dd></div>
    }
    .into_erased()
}

/// Returns the last loss that the trainer reported; `NaN` if it was not finite.
fn loss_text(progress: &ProgressView) -> Option<String> {
    let nan = progress.loss_nan_since.map(|_| "NaN".to_owned());
    nan.or_else(|| progress.loss.map(|value| t().format_number(value)))
}

#[component]
fn ProgressReading(name: &'static str, value: String) -> impl IntoView {
    view! { <div><dt>{name}</dt><dd>{value}</dd></div> }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(more: &serde_json::Value) -> JobView {
        let mut job = serde_json::json!({
            "job_id": "j_1", "config_name": "digits", "config_revision": 1, "target": "auto", "status": "queued",
            "priority": 10, "worker_labels": {}, "attempt": 0, "max_attempts": 3, "submitted_by": "ada",
            "submitted_at": "2026-01-02T03:04:05Z", "status_since": "2026-01-02T03:04:05Z", "queue_position": 1,
        });
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value(job).expect("a job")
    }

    #[test]
    fn queue_position_has_digit_groups() {
        let position_text =
            |position: u32| status_note(&t().job, &queued(&serde_json::json!({"queue_position": position})));
        assert!(position_text(9_998).contains("Position 9,998 in queue"), "{}", position_text(9_998));
        assert!(!position_text(1).contains("Position"), "the next one");
    }

    #[test]
    fn status_note_omits_that_no_worker_matches() {
        let is_empty = |more| has_no_text(&t().job, &queued(&more));
        assert!(is_empty(serde_json::json!({"fits_none": true})));
        assert!(!is_empty(serde_json::json!({"fits_none": true, "error": "the host was lost"})));
        assert!(!is_empty(serde_json::json!({})));
    }

    #[test]
    fn nan_loss_is_shown_as_nan() {
        let loss_text = |number, since| {
            super::loss_text(&ProgressView { loss: number, loss_nan_since: since, ..ProgressView::default() })
        };
        assert_eq!(
            [loss_text(None, None), loss_text(Some(9.65), None), loss_text(None, Some(7))],
            [None, Some("9.65".to_owned()), Some("NaN".to_owned())]
        );
    }
}
