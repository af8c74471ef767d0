//! Texts of empty panels, by the state of the job or worker. No text promises data that can no longer arrive.

use leptos::prelude::*;

use crate::domain::ids::AttemptNumber;
use crate::protocol::jobs::JobView;
use crate::protocol::status::{JobOutcome, JobStatus, WorkerStatus};
use crate::protocol::workers::WorkerView;
use crate::ui::i18n::t;

/// A panel of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobPanel {
    Metrics,
    Samples,
    Files,
    Log,
}

/// The part of a job's state that decides what a panel can still show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobStage {
    pub status: JobStatus,
    /// Whether the job was ever offered to a worker.
    pub was_offered: bool,
    /// Whether its worker has an older agent, which sends less data.
    pub has_older_agent: bool,
}

impl JobStage {
    pub fn new(job: &JobView) -> Self {
        Self { status: job.status, was_offered: job.attempt.0 > 0, has_older_agent: job.older_agent }
    }

    /// Returns the stage of one attempt; all attempts before the newest have ended.
    pub fn for_attempt(job: &JobView, attempt: AttemptNumber) -> Self {
        let status = if job.attempt == attempt { job.status } else { JobStatus::Failed };
        Self { status, ..Self::new(job) }
    }

    const fn is_ongoing(self) -> bool {
        matches!(self.status.outcome(), JobOutcome::Open)
    }
}

/// Returns the text of an empty panel of a job.
pub(crate) fn empty_text(panel: JobPanel, job: JobStage) -> &'static str {
    let words = t();
    let is_ongoing = job.is_ongoing();
    match panel {
        JobPanel::Log if !job.was_offered && is_ongoing => words.log.not_started,
        JobPanel::Log if !job.was_offered => words.log.never_started,
        JobPanel::Metrics | JobPanel::Samples | JobPanel::Log if job.has_older_agent => words.log.of_older_agent,
        JobPanel::Log if is_ongoing => words.log.empty,
        JobPanel::Log => words.log.ended_empty,
        JobPanel::Metrics if is_ongoing => words.charts.no_points,
        JobPanel::Metrics => words.charts.no_metrics_reported,
        JobPanel::Samples if is_ongoing => words.job.no_samples,
        JobPanel::Samples => words.job.no_samples_produced,
        JobPanel::Files if is_ongoing => words.job.no_artifacts,
        JobPanel::Files => words.job.no_artifacts_produced,
    }
}

/// Returns the text as a signal that follows the state of the job.
pub(crate) fn empty_text_signal(panel: JobPanel, stage: Memo<JobStage>) -> Signal<&'static str> {
    Signal::derive(move || empty_text(panel, stage.get()))
}

/// Returns the note about the checkpoint from which the job would resume; `None` once it has completed.
pub(crate) fn checkpoint_note(status: JobStatus) -> Option<&'static str> {
    match status.outcome() {
        JobOutcome::Open => Some(t().work.resumes_here),
        JobOutcome::Completed => None,
        JobOutcome::NotCompleted => Some(t().work.resumes_again),
    }
}

/// Returns the text for a worker without jobs.
pub(crate) fn no_jobs_text(worker: &WorkerView) -> &'static str {
    let words = &t().worker;
    // A drain outlasts the connection.
    if worker.draining {
        return words.jobs_draining;
    }
    match worker.status {
        WorkerStatus::Draining => words.jobs_draining,
        WorkerStatus::Offline | WorkerStatus::Connecting => words.jobs_offline,
        _ if worker.unhealthy_reason.is_some() => words.jobs_unhealthy,
        WorkerStatus::Idle | WorkerStatus::Busy => words.no_jobs_hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANELS: [JobPanel; 4] = [JobPanel::Metrics, JobPanel::Samples, JobPanel::Files, JobPanel::Log];

    fn empty_texts(status: JobStatus, was_offered: bool, has_older_agent: bool) -> [&'static str; 4] {
        PANELS.map(|panel| empty_text(panel, JobStage { status, was_offered, has_older_agent }))
    }

    #[test]
    fn panels_of_ended_jobs_expect_no_data() {
        let while_open = ["No metrics yet.", "No samples yet.", "No files yet."];
        let after_end = ["No metrics reported.", "This job produced no samples.", "This job produced no files."];
        for status in JobStatus::ALL.iter().copied() {
            let (expected, log_without_offer, log) = match status.outcome() {
                JobOutcome::Open => (while_open, "The log appears when the job starts.", "No output yet."),
                JobOutcome::Completed | JobOutcome::NotCompleted => {
                    (after_end, "No log: the job never started.", "No output.")
                }
            };
            let with_log = |log| [expected[0], expected[1], expected[2], log];
            assert_eq!(empty_texts(status, false, false), with_log(log_without_offer), "{status:?}");
            assert_eq!(empty_texts(status, true, false), with_log(log), "{status:?}");
            let older = "The worker's older agent sends no metrics, samples or log.";
            assert_eq!(empty_texts(status, true, true), [older, older, expected[2], older], "{status:?}");
        }
    }

    #[test]
    fn worker_page_promises_no_job_that_it_cannot_run() {
        let text = |status: &str, draining: bool, unhealthy: Option<&str>| {
            let worker = serde_json::json!({
                "id": "w_1", "worker_id": "w_1", "name": "gpu-1", "status": status,
                "status_since": "2026-11-25T00:00:00Z", "local": false, "draining": draining, "max_jobs": 1,
                "gpu_count": 0, "unhealthy_reason": unhealthy, "labels": {}, "reported_labels": {},
                "ignore_reported_labels": false, "created_at": "2026-11-25T00:00:00Z", "jobs": [],
            });
            no_jobs_text(&serde_json::from_value(worker).expect("a worker"))
        };
        let (ready, once_connected) =
            ("Ready for the next matching job.", "Jobs start here once the agent is connected.");
        assert_eq!([text("idle", false, None), text("busy", false, None)], [ready, ready]);
        assert_eq!([text("offline", false, None), text("connecting", false, None)], [once_connected, once_connected]);
        assert_eq!(text("idle", false, Some("the disk is full")), "Unhealthy: accepts no new jobs.");
        for status in ["draining", "offline", "connecting"] {
            assert_eq!(text(status, true, None), "Draining: accepts no new jobs.", "{status}");
        }
        assert_eq!(text("draining", false, None), "Draining: accepts no new jobs.", "a retired worker");
    }

    #[test]
    fn checkpoint_note_is_shown_until_the_job_is_completed() {
        let (next, again) = ("the next attempt resumes from here", "a retry resumes from here");
        for status in JobStatus::ALL {
            let note = match status.outcome() {
                JobOutcome::Open => Some(next),
                JobOutcome::Completed => None,
                JobOutcome::NotCompleted => Some(again),
            };
            assert_eq!(checkpoint_note(status), note, "{status:?}");
        }
    }
}
