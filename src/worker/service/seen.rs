//! What jobs and operators have in common: how far a job is, and whether its host is about to be taken away.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use app::protocol::worker::ProgressPoint;
use tokio::time::Instant;

use crate::files::Key;
use crate::spot::HostEnd;

/// See the module.
#[derive(Debug, Default)]
pub struct Shared {
    progress: Mutex<BTreeMap<Key, Progress>>,
    end: OnceLock<HostEnd>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Steps done.
    pub step: Option<u64>,
    /// Steps in all.
    pub total: Option<u64>,
    /// The newest loss.
    pub loss: Option<f64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what a trainer says.
    pub fn note(&self, key: &Key, points: &[ProgressPoint]) {
        let mut known = self.lock();
        let seen = known.entry(key.clone()).or_default();
        for point in points {
            seen.step = Some(point.step);
            seen.total = point.total_steps.or(seen.total);
            seen.loss = point.loss.or(seen.loss);
        }
    }

    /// How far a job is, if it has said.
    pub fn progress(&self, key: &Key) -> Progress {
        self.lock().get(key).copied().unwrap_or_default()
    }

    /// Forgets whoever is not among these.
    pub fn keep(&self, running: impl Fn(&Key) -> bool) {
        self.lock().retain(|key, _| running(key));
    }

    /// The host is about to be taken away.
    pub fn ends(&self, end: HostEnd) {
        // The first notice holds.
        let _ = self.end.set(end);
    }

    /// What to report of jobs that had to stop for it.
    pub fn end_in_words(&self) -> Option<String> {
        self.end.get().map(|end| end.sentence.clone())
    }

    /// How long a trainer gets to end: as usual, unless the host does not last as long.
    pub fn grace(&self, usual: Duration) -> Duration {
        self.end.get().map_or(usual, |end| end.grace(usual, Instant::now()))
    }
}
