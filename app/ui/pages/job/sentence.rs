//! The reason of a job's state, in one sentence.

use crate::domain::text::split_headline;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::jobs::{JobView, ProgressView};
use crate::protocol::status::JobStatus;
use crate::ui::i18n::t;
use crate::ui::losses::job_error;

/// Returns what the job waits for, what it does, or how it ended.
pub(super) fn status_sentence(job: &JobView, now: Timestamp) -> String {
    let words = &t().job;
    match job.status {
        JobStatus::Queued => queued_sentence(job, now),
        JobStatus::Offered => words.offered_hint.to_owned(),
        JobStatus::Starting => words.starting_hint.to_owned(),
        JobStatus::Running => job.progress.as_ref().map_or_else(|| words.running_hint.to_owned(), progress_sentence),
        JobStatus::Cancelling => job
            .cancelled_by
            .as_ref()
            .map_or_else(|| words.cancelling_hint.to_owned(), |user| words.cancelling_by.of(user)),
        JobStatus::Completed => {
            let duration = run_time(job).map(|duration| t().format_duration(duration));
            duration.map_or_else(|| words.completed_hint.to_owned(), |duration| words.completed_after.of(duration))
        }
        JobStatus::Failed => job_error(job).map(|error| split_headline(&error).0.to_owned()).unwrap_or_default(),
        JobStatus::Cancelled => job
            .cancelled_by
            .as_ref()
            .map_or_else(|| words.cancelled_hint.to_owned(), |user| words.cancelled_by.of(user)),
    }
}

fn queued_sentence(job: &JobView, now: Timestamp) -> String {
    let words = &t().job;
    let next = match job.retry_at.filter(|at| *at > now) {
        Some(at) => words.next_attempt_in.of(t().format_duration(at - now)),
        None if job.fits_none => words.no_match_hint.to_owned(),
        None => {
            let position = match job.queue_position {
                None => words.waiting_for.to_owned(),
                Some(1) => words.next_in_line.to_owned(),
                Some(position) => words.position.of(t().format_integer(position)),
            };
            t().common.sentences.with(&[&position, &words.waiting_hint])
        }
    };
    let lost = job_error(job).map(|error| words.attempt_lost.with(&[&job.attempt, &split_headline(&error).0]));
    lost.into_iter().chain([next]).collect::<Vec<_>>().join(" ")
}

fn progress_sentence(progress: &ProgressView) -> String {
    let step = t().format_integer(progress.step);
    let step = match progress.total_steps {
        Some(total) => t().common.of.with(&[&step, &t().format_integer(total)]),
        None => step,
    };
    let left = remaining(progress).map(|left| t().work.left.of(t().format_duration(left)));
    [t().job.samples_step.of(step)].into_iter().chain(left).collect::<Vec<_>>().join(" · ")
}

/// The trainer's estimate of the remaining time.
#[expect(clippy::cast_possible_truncation, reason = "an estimate in whole seconds; a float saturates")]
fn remaining(progress: &ProgressView) -> Option<Millis> {
    progress.eta_seconds.map(|seconds| Millis::from_secs(seconds as i64))
}

/// How long the newest attempt ran, if it has ended.
pub(super) fn run_time(job: &JobView) -> Option<Millis> {
    Some(job.ended_at? - job.started_at?)
}

/// The hours for which attempts have used GPUs; none without GPUs.
#[expect(clippy::cast_precision_loss, reason = "hours for display")]
pub(super) fn gpu_hours(job: &JobView) -> Option<f64> {
    let runs = job
        .attempts
        .iter()
        .flatten()
        .filter_map(|attempt| Some((attempt.ended_at? - attempt.started_at?).0.max(0) * i64::from(attempt.gpus)));
    let gpu_time: i64 = runs.sum();
    (gpu_time > 0).then(|| gpu_time as f64 / 3_600_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::jobs::AttemptView;

    fn job(status: &str, more: &serde_json::Value) -> JobView {
        let mut job = serde_json::json!({
            "job_id": "j_1", "config_name": "digits", "config_revision": 1, "target": "auto", "status": status,
            "priority": 10, "worker_labels": {}, "attempt": 1, "max_attempts": 3, "submitted_by": "ada",
            "submitted_at": "2026-01-02T03:04:05Z", "status_since": "2026-01-02T03:04:05Z", "queue_position": 2,
            "started_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:06:05Z",
        });
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value(job).expect("a job")
    }

    fn sentence(status: &str, more: &serde_json::Value) -> String {
        let now = Timestamp::parse_rfc3339("2026-01-02T03:04:00Z").expect("a time");
        status_sentence(&job(status, more), now)
    }

    #[test]
    fn each_state_has_its_reason() {
        let none = serde_json::json!({});
        assert_eq!(
            sentence("queued", &none),
            "Position 2 in queue. Starts automatically when a matching worker is free."
        );
        assert_eq!(sentence("completed", &none), "Training completed after 2\u{a0}min.");
        assert_eq!(sentence("completed", &serde_json::json!({"started_at": null})), "Training completed.");
        assert_eq!(sentence("cancelled", &none), "This job was cancelled.");
        let by_eve = serde_json::json!({"cancelled_by": "eve"});
        assert_eq!(sentence("cancelled", &by_eve), "Cancelled by eve.");
        assert_eq!(sentence("cancelling", &by_eve), "Cancelled by eve; stopping the trainer…");
        assert_eq!(sentence("failed", &serde_json::json!({"error": "ValueError: x\n  File"})), "ValueError: x");
        assert_eq!(sentence("running", &none), "The trainer is running.");
        let progress = serde_json::json!({"progress": {
            "step": 1_640, "total_steps": 2_000, "at": "2026-01-02T03:04:05Z", "eta_seconds": 1_500.7,
        }});
        assert_eq!(sentence("running", &progress), "Step 1,640 of 2,000 · 25\u{a0}min left");
    }

    #[test]
    fn queued_job_says_why_it_waits() {
        let of = |more| sentence("queued", &more);
        assert!(of(serde_json::json!({"queue_position": 9_998})).starts_with("Position 9,998 in queue."));
        assert!(of(serde_json::json!({"queue_position": 1})).starts_with("Next in queue."));
        assert_eq!(of(serde_json::json!({"fits_none": true})), "Waits for a worker that meets the requirements.");
        let lost = serde_json::json!({
            "error": "text", "loss_code": "returned", "retry_at": "2026-01-02T03:04:10Z", "fits_none": true,
        });
        assert_eq!(of(lost), "Attempt 1 was lost: The agent returned the job. Next attempt in 10\u{a0}s.");
        let is_due = serde_json::json!({"error": "text", "retry_at": "2026-01-02T03:03:10Z"});
        assert!(of(is_due).starts_with("Attempt 1 was lost: text Position 2 in queue."), "the back-off is over");
    }

    #[test]
    fn gpu_hours_add_up_over_attempts() {
        let mut job = JobView::example();
        let attempt =
            |gpus, ended_at| AttemptView { gpus, ended_at, ..job.attempts.as_ref().expect("attempts")[0].clone() };
        let started = job.started_at.expect("a start");
        let until = |hours: i64| Some(Timestamp(started.0 + hours * 3_600_000));
        let attempts = vec![attempt(2, until(1)), attempt(4, until(3)), attempt(8, None)];
        job.attempts = Some(attempts);
        assert_eq!(gpu_hours(&job), Some(14.0));
        job.attempts = None;
        assert_eq!(gpu_hours(&job), None);
    }
}
