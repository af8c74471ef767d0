//! The thread that keeps disk space free, and the state that it publishes.
//!
//! Removing the files of large jobs takes minutes, and a disk may hang: only this thread then waits.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::worker::clock;
use crate::worker::config::AgentConfig;
use crate::worker::filesystem::{format_gib, read_disk_space};
use crate::worker::retention::{self, RetentionPolicy};

const CHECK_INTERVAL: Duration = Duration::from_secs(15);
/// How often files that only get old are pruned.
const PRUNE_INTERVAL: Duration = Duration::from_hours(1);
/// How often files are pruned at most while there is enough space: all attempts are read for it.
const MIN_PRUNE_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the disk has enough space for another job.
#[derive(Debug)]
pub struct DiskSpaceMonitor {
    status: Arc<DiskSpaceStatus>,
    requests: Sender<DiskRequest>,
}

enum DiskRequest {
    /// Prune soon.
    Prune,
    /// Check now, and prune if space is short.
    Check(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct DiskSpaceStatus {
    /// Why no new jobs are accepted.
    unhealthy_reason: Mutex<Option<String>>,
    /// Notified when the reason changes.
    changed: Notify,
}

/// The thread's state.
struct DiskWatcher {
    work_dir: PathBuf,
    policy: RetentionPolicy,
    is_short: bool,
    last_pruned: Instant,
    must_prune: bool,
}

impl DiskSpaceMonitor {
    /// Checks once, then periodically in a separate thread.
    pub fn start(config: &AgentConfig) -> Self {
        let (sender, requests) = channel();
        let policy = RetentionPolicy { min_free_space: config.min_free_space, home_retention: config.home_retention };
        let work_dir = config.work_dir.clone();
        let mut disk =
            DiskWatcher { work_dir, policy, is_short: false, last_pruned: Instant::now(), must_prune: false };
        let status = Arc::<DiskSpaceStatus>::default();
        // The first registration must report it. Pruning waits until adoption is finished.
        disk.is_short = disk.is_short_now();
        status.set(disk.shortage_reason());
        let thread_status = Arc::clone(&status);
        let work = move || disk.run(&thread_status, &requests);
        if let Err(error) = std::thread::Builder::new().name("disk-space".to_owned()).spawn(work) {
            tracing::error!("cannot start the disk space monitor: {error}");
        }
        Self { status, requests: sender }
    }

    /// A disk that always has space.
    #[cfg(feature = "simulation")]
    pub fn always_free() -> Self {
        Self { status: Arc::default(), requests: channel().0 }
    }

    /// Requests that old files are pruned, without waiting.
    pub fn request_prune(&self) {
        // If the thread could not be started, which was logged, nothing is pruned.
        let _ = self.requests.send(DiskRequest::Prune);
    }

    /// Checks now, and prunes if space is short. Returns why there is not enough space.
    pub async fn check_now(&self) -> Option<String> {
        let (done, is_done) = oneshot::channel();
        if self.requests.send(DiskRequest::Check(done)).is_ok() {
            // Without the thread the state is unchanged.
            let _ = is_done.await;
        }
        self.unhealthy_reason()
    }

    /// Why no new jobs are accepted, if so.
    pub fn unhealthy_reason(&self) -> Option<String> {
        self.status.unhealthy_reason().clone()
    }

    /// Waits until the reason has changed since the last call.
    pub async fn changed(&self) {
        self.status.changed.notified().await;
    }
}

impl DiskSpaceStatus {
    fn unhealthy_reason(&self) -> MutexGuard<'_, Option<String>> {
        self.unhealthy_reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, reason: Option<String>) {
        if *self.unhealthy_reason() == reason {
            return;
        }
        if let Some(reason) = &reason {
            tracing::error!("accepting no new jobs: {reason}. Free disk space, or lower --keep-free");
        } else {
            tracing::info!("enough disk space again: accepting jobs");
        }
        *self.unhealthy_reason() = reason;
        self.changed.notify_one();
    }
}

impl DiskWatcher {
    /// Runs until all senders are dropped.
    fn run(mut self, status: &DiskSpaceStatus, requests: &Receiver<DiskRequest>) {
        loop {
            let done = match requests.recv_timeout(self.next_check()) {
                Ok(DiskRequest::Check(done)) => Some(done),
                Ok(DiskRequest::Prune) => {
                    self.must_prune = true;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.check(status);
            // The receiver may have been dropped.
            let _ = done.map(|done| done.send(()));
        }
    }

    fn next_check(&self) -> Duration {
        if self.must_prune { MIN_PRUNE_INTERVAL.saturating_sub(self.last_pruned.elapsed()) } else { CHECK_INTERVAL }
    }

    /// Prunes if it is time to, or if there is too little space.
    fn check(&mut self, status: &DiskSpaceStatus) {
        let is_short = self.is_short_now();
        let interval = if self.must_prune { MIN_PRUNE_INTERVAL } else { PRUNE_INTERVAL };
        self.is_short = if is_short || self.last_pruned.elapsed() >= interval {
            (self.last_pruned, self.must_prune) = (Instant::now(), false);
            let now = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(clock::now().0).unwrap_or_default());
            retention::prune(&self.work_dir, self.policy, self.is_short, now, || read_disk_space(&self.work_dir))
        } else {
            is_short
        };
        status.set(self.shortage_reason());
    }

    fn is_short_now(&self) -> bool {
        read_disk_space(&self.work_dir)
            .map_or(self.is_short, |space| self.policy.min_free_space.is_short(self.is_short, space))
    }

    /// The reason if space is short. The text is constant while it lasts, because a change is reported.
    fn shortage_reason(&self) -> Option<String> {
        let floor =
            read_disk_space(&self.work_dir).map(|space| format_gib(self.policy.min_free_space.bytes(space.total)));
        let floor = floor.unwrap_or_else(|| "the minimum".to_owned());
        self.is_short.then(|| format!("less than {floor} is free on the disk of {}", self.work_dir.display()))
    }
}
