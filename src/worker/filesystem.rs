//! The space of a file system.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Below this free space, in bytes, the rest of the disk is reserved for data that is more important than output.
pub const LOW_DISK_BYTES: u64 = 64 << 20;

/// Space of a file system for users other than root, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesystemSpace {
    pub free: u64,
    pub total: u64,
}

/// The space of a directory's file system.
pub fn read_disk_space(dir: &Path) -> Option<FilesystemSpace> {
    let disk = statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
    Some(FilesystemSpace { free: bytes(disk.blocks_available()), total: bytes(disk.blocks()) })
}

pub fn format_gib(bytes: u64) -> String {
    let tenths = (bytes >> 20) * 10 / 1024;
    if tenths < 10 {
        return format!("{} MiB", bytes >> 20);
    }
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_in_gib() {
        const GIB: u64 = 1 << 30;
        let texts = [0, 48 << 20, GIB / 2, 10 * GIB, u64::MAX].map(format_gib);
        assert_eq!(texts, ["0 MiB", "48 MiB", "512 MiB", "10.0 GiB", "17179869183.9 GiB"]);
    }
}
