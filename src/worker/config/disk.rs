//! How much of the work directory's disk is kept free.

use app::domain::watermark::{Floor, is_full};

/// What nobody has to ask for, in bytes: a few checkpoints of a small model.
const USUAL: u64 = 10 << 30;
/// It is not more than this part of the disk: small ones are rented by the gigabyte.
const USUAL_PART: u64 = 20;

/// What a file system has for who is not root, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What is left.
    pub free: u64,
    /// What there is.
    pub total: u64,
}

/// The least that is to stay free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepFree {
    /// What makes sense on this disk.
    Usual,
    /// What a person has said.
    Told(Floor),
}

impl KeepFree {
    /// Of the flag.
    pub fn of(told: Option<Floor>) -> Self {
        told.map_or(Self::Usual, Self::Told)
    }

    /// In bytes, on a disk of this size.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Usual => USUAL.min(total / USUAL_PART),
            Self::Told(floor) => floor.of(total),
        }
    }

    /// Whether less is free now. What was short stays so until there is clearly room.
    pub fn is_short(self, was: bool, space: Space) -> bool {
        is_full(was, Floor::Bytes(self.bytes(space.total)), space.total, space.free)
    }
}

/// Bytes as people say them.
pub fn gib(bytes: u64) -> String {
    let tenths = (bytes >> 20) * 10 / 1024;
    if tenths < 10 {
        return format!("{} MiB", bytes >> 20);
    }
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_small_disk_keeps_less_free() {
        for (told, total, bytes) in [
            (None, 4_000 * GIB, 10 * GIB),
            (None, 200 * GIB, 10 * GIB),
            (None, 40 * GIB, 2 * GIB),
            (Some(Floor::Bytes(30 * GIB)), 40 * GIB, 30 * GIB),
            (Some(Floor::Percent(50)), 4_000, 2_000),
            (Some(Floor::Bytes(0)), 40 * GIB, 0),
        ] {
            assert_eq!(KeepFree::of(told).bytes(total), bytes, "{told:?} of {total}");
        }
    }

    #[test]
    fn sizes_in_words() {
        let words = [0, 48 << 20, GIB / 2, 10 * GIB, u64::MAX].map(gib);
        assert_eq!(words, ["0 MiB", "48 MiB", "512 MiB", "10.0 GiB", "17179869183.9 GiB"]);
    }

    #[test]
    fn what_was_short_has_to_be_clearly_free() {
        let short = |was, free| KeepFree::Usual.is_short(was, Space { free, total: 400 * GIB });
        assert_eq!([short(false, 10 * GIB - 1), short(false, 10 * GIB)], [true, false]);
        assert_eq!([short(true, 11 * GIB - 1), short(true, 11 * GIB)], [true, false]);
    }
}
