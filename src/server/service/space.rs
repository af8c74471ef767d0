//! Free space on the data directory's disk. Below a watermark nothing new is begun, so that what runs can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use app::domain::watermark::{Floor, is_full};
use app::protocol::topic::Topic;

use super::Core;
use super::refusal::Refusal;
use crate::disk::{Disk, Space};

/// See the module. What was seen last is in memory, so that a submit asks no file system, which may hang.
pub struct Room {
    disk: Arc<dyn Disk>,
    floor: Floor,
    /// What even that which runs leaves free.
    running: Floor,
    total: AtomicU64,
    free: AtomicU64,
    /// Since when it counts as full, in milliseconds since 1970; 0 if it does not.
    full_since: AtomicI64,
}

impl Room {
    /// On this disk, of which so much stays free of new jobs, and so much of what runs. Nothing was looked at yet.
    pub fn new(disk: Arc<dyn Disk>, floor: Floor, running: Floor) -> Self {
        let (total, free) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { disk, floor, running, total, free, full_since: AtomicI64::new(0) }
    }

    /// What was seen last; none if nothing was.
    pub fn space(&self) -> Option<Space> {
        let (total, free) = (self.total.load(Ordering::Relaxed), self.free.load(Ordering::Relaxed));
        (total > 0).then_some(Space { total, free })
    }

    /// Whether nothing new is begun.
    pub fn is_full(&self) -> bool {
        self.full_since().is_some()
    }

    /// Since when nothing new is begun, if so.
    pub fn full_since(&self) -> Option<Timestamp> {
        Some(Timestamp(self.full_since.load(Ordering::Relaxed))).filter(|since| since.0 != 0)
    }

    /// How many bytes stay free.
    pub fn floor(&self) -> u64 {
        self.floor.of(self.total.load(Ordering::Relaxed))
    }
}

impl Core {
    /// Refuses to begin anything while the disk counts as full.
    pub fn need_room(&self) -> Result<(), Refusal> {
        let Some(Space { free, .. }) = self.room.space().filter(|_| self.room.is_full()) else { return Ok(()) };
        Err(Refusal::DiskFull { free, floor: self.room.floor() })
    }

    /// Refuses more of what runs already: the database needs what is left, so that jobs can end in order. Its agent tries
    /// again until there is room.
    pub fn need_room_to_run(&self) -> Result<(), Refusal> {
        let Some(Space { total, free }) = self.room.space() else { return Ok(()) };
        let floor = self.room.running.of(total);
        if free < floor { Err(Refusal::DiskFullToRun { free, floor }) } else { Ok(()) }
    }

    /// Refuses files of an attempt that was offered while the disk counted as full: those of the attempts that ran
    /// before have a claim on what is left. Its agent tries again until there is room.
    pub async fn need_room_for(&self, job: &JobId, attempt: Attempt) -> Result<(), Refusal> {
        self.need_room_to_run()?;
        let Some(since) = self.room.full_since() else { return Ok(()) };
        let attempts = self.read().await?.attempts(job).await?;
        let is_new = attempts.iter().any(|stored| stored.attempt == attempt && stored.offered_at >= since);
        if is_new { self.need_room() } else { Ok(()) }
    }

    /// Looks at the disk.
    ///
    /// # Errors
    /// When it does not answer; what was seen last stays.
    pub fn look_at_disk(&self) -> Result<(), Refusal> {
        let room = &self.room;
        let Space { total, free } = room.disk.space()?;
        room.total.store(total, Ordering::Relaxed);
        room.free.store(free, Ordering::Relaxed);
        let was = room.is_full();
        let is = is_full(was, room.floor, total, free);
        if is != was {
            room.full_since.store(if is { self.now().0 } else { 0 }, Ordering::Relaxed);
            self.hub.bump([Topic::Jobs]);
        }
        if is && !was {
            tracing::warn!(free, floor = room.floor(), "the disk is almost full: no new jobs are taken; make room");
        } else if was && !is {
            tracing::info!(free, "there is room on the disk again: new jobs are taken");
        }
        Ok(())
    }
}
