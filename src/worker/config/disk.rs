//! How much of the work directory's disk to keep free.

use app::domain::disk_watermark::{DiskFloor, is_full};

use crate::worker::filesystem::FilesystemSpace;

/// The default, in bytes: a few checkpoints of a small model.
const DEFAULT_MIN_FREE_BYTES: u64 = 10 << 30;
/// The default is at most this part of the disk: small disks are rented by the gigabyte.
const DEFAULT_MIN_FREE_DIVISOR: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinFreeSpace {
    /// The default for the disk.
    Auto,
    /// Set by the user.
    Explicit(DiskFloor),
}

impl MinFreeSpace {
    pub fn from_flag(floor: Option<DiskFloor>) -> Self {
        floor.map_or(Self::Auto, Self::Explicit)
    }

    /// In bytes, on a disk of this size.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Auto => DEFAULT_MIN_FREE_BYTES.min(total / DEFAULT_MIN_FREE_DIVISOR),
            Self::Explicit(floor) => floor.to_bytes(total),
        }
    }

    /// Whether less is free. A disk that was short stays so until there is clearly enough space.
    pub fn is_short(self, was_short: bool, space: FilesystemSpace) -> bool {
        is_full(was_short, DiskFloor::Bytes(self.bytes(space.total)), space.total, space.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn small_disk_has_a_lower_default_minimum() {
        for (floor, total, bytes) in [
            (None, 4_000 * GIB, 10 * GIB),
            (None, 200 * GIB, 10 * GIB),
            (None, 40 * GIB, 2 * GIB),
            (Some(DiskFloor::Bytes(30 * GIB)), 40 * GIB, 30 * GIB),
            (Some(DiskFloor::Percent(50)), 4_000, 2_000),
            (Some(DiskFloor::Bytes(0)), 40 * GIB, 0),
        ] {
            assert_eq!(MinFreeSpace::from_flag(floor).bytes(total), bytes, "{floor:?} of {total}");
        }
    }

    #[test]
    fn short_disk_recovers_only_with_a_margin() {
        let is_short =
            |was_short, free| MinFreeSpace::Auto.is_short(was_short, FilesystemSpace { free, total: 400 * GIB });
        assert_eq!([is_short(false, 10 * GIB - 1), is_short(false, 10 * GIB)], [true, false]);
        assert_eq!([is_short(true, 11 * GIB - 1), is_short(true, 11 * GIB)], [true, false]);
    }
}
