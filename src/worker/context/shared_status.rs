//! State that jobs and the loop share: the progress of jobs, and whether the host is about to be terminated.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use app::protocol::agents::ProgressPoint;
use tokio::time::Instant;

use crate::worker::files::AttemptKey;
use crate::worker::spot::HostTermination;

#[derive(Debug, Default)]
pub struct SharedStatus {
    progress: Mutex<BTreeMap<AttemptKey, JobProgress>>,
    host_termination: OnceLock<HostTermination>,
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JobProgress {
    pub step: Option<u64>,
    pub total: Option<u64>,
    /// The latest loss.
    pub loss: Option<f64>,
}

impl SharedStatus {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttemptKey, JobProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the points that a trainer reports.
    pub fn record_points(&self, key: &AttemptKey, points: &[ProgressPoint]) {
        let mut jobs = self.lock();
        let progress = jobs.entry(key.clone()).or_default();
        for point in points {
            progress.step = Some(point.step);
            progress.total = point.total_steps.or(progress.total);
            progress.loss = point.loss.or(progress.loss);
        }
    }

    /// The progress of a job, if it has reported any.
    pub fn progress(&self, key: &AttemptKey) -> JobProgress {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// Removes the progress of attempts that do not run.
    pub fn retain(&self, is_running: impl Fn(&AttemptKey) -> bool) {
        self.lock().retain(|key, _| is_running(key));
    }

    /// Records that the host is about to be terminated.
    pub fn set_host_termination(&self, termination: HostTermination) {
        // The first notice counts.
        let _ = self.host_termination.set(termination);
    }

    /// The reason to report for jobs that were stopped for it.
    pub fn host_termination_reason(&self) -> Option<String> {
        self.host_termination.get().map(|termination| termination.sentence.clone())
    }

    /// The grace period of a trainer: as usual, unless the host is terminated earlier.
    pub fn stop_grace(&self, default_grace: Duration) -> Duration {
        self.host_termination
            .get()
            .map_or(default_grace, |termination| termination.stop_grace(default_grace, Instant::now()))
    }
}
