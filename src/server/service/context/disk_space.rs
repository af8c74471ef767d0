//! Free space on the data directory's disk. Below a threshold nothing new is started, so that running work can finish.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use app::domain::disk_watermark::{DiskFloor, is_full};
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::time::Timestamp;
use app::protocol::topic::Topic;

use crate::disk::{DiskProbe, DiskSpace};
use crate::service::ServiceContext;
use crate::service::error::ServiceError;

/// The last known free space and its limits. Kept in memory, so that a submit does not access the file system, which
/// may hang.
pub struct DiskSpaceGuard {
    probe: Arc<dyn DiskProbe>,
    floor: DiskFloor,
    /// The space that running work must leave free.
    running_floor: DiskFloor,
    total: AtomicU64,
    free: AtomicU64,
    /// Since when the disk counts as full, in milliseconds since 1970; 0 if it does not.
    full_since: AtomicI64,
}

impl DiskSpaceGuard {
    /// Creates a guard with the floor for new jobs, and the lower one for running work. Nothing is measured yet.
    pub fn new(disk: Arc<dyn DiskProbe>, floor: DiskFloor, running: DiskFloor) -> Self {
        let (total, free) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { probe: disk, floor, running_floor: running, total, free, full_since: AtomicI64::new(0) }
    }

    pub fn space(&self) -> Option<DiskSpace> {
        let (total, free) = (self.total.load(Ordering::Relaxed), self.free.load(Ordering::Relaxed));
        (total > 0).then_some(DiskSpace { total, free })
    }

    pub fn is_full(&self) -> bool {
        self.full_since().is_some()
    }

    /// Since when nothing new is started, if so.
    pub fn full_since(&self) -> Option<Timestamp> {
        Some(Timestamp(self.full_since.load(Ordering::Relaxed))).filter(|since| since.0 != 0)
    }

    pub fn floor_bytes(&self) -> u64 {
        self.floor.to_bytes(self.total.load(Ordering::Relaxed))
    }
}

impl ServiceContext {
    /// Fails while the disk counts as full.
    pub fn check_disk_space(&self) -> Result<(), ServiceError> {
        let Some(DiskSpace { free, .. }) = self.disk_space.space().filter(|_| self.disk_space.is_full()) else {
            return Ok(());
        };
        Err(ServiceError::DiskFull { free, floor: self.disk_space.floor_bytes() })
    }

    /// Fails if running work must not write more either: the database needs the rest, so that jobs can end in order.
    /// The agent retries.
    pub fn check_running_disk_space(&self) -> Result<(), ServiceError> {
        let Some(DiskSpace { total, free }) = self.disk_space.space() else { return Ok(()) };
        let floor = self.disk_space.running_floor.to_bytes(total);
        if free < floor { Err(ServiceError::DiskFullForRunning { free, floor }) } else { Ok(()) }
    }

    /// Rejects files of an attempt that was offered while the disk counted as full: earlier attempts have priority for
    /// the remaining space. The agent retries.
    pub async fn check_attempt_disk_space(&self, job: &JobId, attempt: AttemptNumber) -> Result<(), ServiceError> {
        self.check_running_disk_space()?;
        let Some(since) = self.disk_space.full_since() else { return Ok(()) };
        let attempts = self.read().await?.attempts(job).await?;
        let is_new = attempts.iter().any(|stored| stored.attempt == attempt && stored.offered_at >= since);
        if is_new { self.check_disk_space() } else { Ok(()) }
    }

    /// Measures the free space.
    ///
    /// # Errors
    /// When the disk does not answer; the last value stays.
    pub fn refresh_disk_space(&self) -> Result<(), ServiceError> {
        let disk_space = &self.disk_space;
        let DiskSpace { total, free } = disk_space.probe.space()?;
        disk_space.total.store(total, Ordering::Relaxed);
        disk_space.free.store(free, Ordering::Relaxed);
        let was_full = disk_space.is_full();
        let now_full = is_full(was_full, disk_space.floor, total, free);
        if now_full != was_full {
            disk_space.full_since.store(if now_full { self.now().0 } else { 0 }, Ordering::Relaxed);
            self.notifier.notify([Topic::Jobs]);
        }
        if now_full && !was_full {
            tracing::warn!(
                free,
                floor = disk_space.floor_bytes(),
                "disk space: below the limit, no new jobs are accepted; free some space"
            );
        } else if was_full && !now_full {
            tracing::info!(free, "disk space: above the limit again, new jobs are accepted");
        }
        Ok(())
    }
}
