//! Live data of a running job's page: progress, metrics, GPUs and log, in one request.

use std::time::Duration;

use leptos::prelude::*;

use super::backend::SharedBackend;
use super::live::{RefreshFuture, on_change};
use super::logs::TailBuffer;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::artifacts::ArtifactsPage;
use crate::protocol::gpus::history::{GpuHistory, JobMetrics};
use crate::protocol::jobs::{JobLive, JobView};
use crate::protocol::topic::Topic;

/// Trainers report metrics every second or two; refreshing that often would only load the server and the page.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

/// The data of the visible panels. Each panel registers its own signal; hidden panels have none.
#[derive(Clone, Copy, Default)]
pub(crate) struct JobFeed {
    pub metrics: StoredValue<Option<RwSignal<JobMetrics>>>,
    pub gpus: StoredValue<Option<RwSignal<GpuHistory>>>,
    pub log: StoredValue<Option<(AttemptNumber, RwSignal<TailBuffer>)>>,
    /// The attempt whose metrics are shown; none for the newest one.
    pub attempt: StoredValue<Option<AttemptNumber>>,
}

/// Returns the feed of the page.
pub(crate) fn use_job_feed() -> JobFeed {
    use_context().unwrap_or_default()
}

impl JobFeed {
    /// Updates the panels until the caller's owner is disposed of. State changes of the job have their own topic.
    pub fn start(id: JobId, backend: SharedBackend, job: RwSignal<(JobView, ArtifactsPage)>) -> Self {
        let feed = Self::default();
        provide_context(feed);
        let topics = [Topic::Progress(id.clone()), Topic::Log(id.clone())];
        let fetch = move || -> RefreshFuture {
            let (backend, id) = (backend.clone(), id.clone());
            Box::pin(async move {
                let mut has_more = true;
                while has_more {
                    let (attempt, offset) = feed.log_position();
                    let live = backend.job_live(id.clone(), attempt, offset).await?;
                    has_more = live
                        .log
                        .as_ref()
                        .is_some_and(|log| log.next_offset < log.size && Some(log.next_offset) != offset);
                    has_more &= offset.is_some();
                    feed.apply(live, job);
                }
                Ok(())
            })
        };
        on_change(&topics, MIN_INTERVAL, Box::new(fetch));
        feed
    }

    /// Returns the attempt whose log is shown, and the offset of its next chunk.
    fn log_position(self) -> (Option<AttemptNumber>, Option<u64>) {
        let Some((attempt, lines)) = self.shown_log() else { return (self.attempt.try_get_value().flatten(), None) };
        (Some(attempt), lines.try_with_untracked(TailBuffer::next_offset).flatten())
    }

    /// Returns the log of the page; none if its panel is hidden or was removed.
    fn shown_log(self) -> Option<(AttemptNumber, RwSignal<TailBuffer>)> {
        self.log.try_get_value().flatten().filter(|(_, lines)| !lines.is_disposed())
    }

    fn apply(self, live: JobLive, job: RwSignal<(JobView, ArtifactsPage)>) {
        if job.try_with_untracked(|(job, _)| is_current(job, &live)) == Some(true) {
            job.try_update(|(job, _)| job.progress = live.progress);
        }
        if let Some(gpus) = self.gpus.try_get_value().flatten() {
            gpus.try_set(live.gpus);
        }
        // The user may have selected another attempt in the meantime.
        let shown_log = self.shown_log();
        if shown_log.is_some_and(|(attempt, _)| attempt != live.metrics.attempt) {
            return;
        }
        if let Some(metrics) = self.metrics.try_get_value().flatten() {
            metrics.try_set(live.metrics);
        }
        if let (Some((_, lines)), Some(chunk)) = (shown_log, live.log) {
            lines.try_update(|lines| lines.push(&chunk));
        }
    }
}

/// Returns whether the response contains new progress for the job as shown; a newer state may have arrived first.
fn is_current(shown: &JobView, live: &JobLive) -> bool {
    shown.status == live.status && shown.attempt == live.attempt && shown.progress != live.progress
}
