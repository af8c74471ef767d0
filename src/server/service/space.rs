//! Free space on the data directory's disk. Below a watermark nothing new is begun, so that what runs can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use app::domain::watermark::{Floor, is_full};
use app::protocol::topic::Topic;

use super::Core;
use super::refusal::Refusal;
use crate::disk::{Disk, Space};

/// See the module. What was seen last is in memory, so that a submit asks no file system, which may hang.
pub struct Room {
    disk: Arc<dyn Disk>,
    floor: Floor,
    total: AtomicU64,
    free: AtomicU64,
    full: AtomicBool,
}

impl Room {
    /// On this disk, of which so much stays free. Nothing was looked at yet.
    pub fn new(disk: Arc<dyn Disk>, floor: Floor) -> Self {
        let (total, free) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { disk, floor, total, free, full: AtomicBool::new(false) }
    }

    /// What was seen last; none if nothing was.
    pub fn space(&self) -> Option<Space> {
        let (total, free) = (self.total.load(Ordering::Relaxed), self.free.load(Ordering::Relaxed));
        (total > 0).then_some(Space { total, free })
    }

    /// Whether nothing new is begun.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// How many bytes stay free.
    pub fn floor(&self) -> u64 {
        self.floor.of(self.total.load(Ordering::Relaxed))
    }
}

impl Core {
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
        room.full.store(is, Ordering::Relaxed);
        if is && !was {
            tracing::warn!(free, floor = room.floor(), "the disk is almost full: no new jobs are taken; make room");
        } else if was && !is {
            tracing::info!(free, "there is room on the disk again: new jobs are taken");
        }
        if is != was {
            self.hub.bump([Topic::Jobs]);
        }
        Ok(())
    }
}
