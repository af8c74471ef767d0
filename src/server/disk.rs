//! The one place where the free space of a disk is read.

use std::path::PathBuf;

/// How large a disk is, and how much of it this user may still fill, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// In all.
    pub total: u64,
    /// Free.
    pub free: u64,
}

/// Tells the free space; tests fill a disk by hand.
pub trait Disk: Send + Sync {
    /// Of the data directory's disk, now.
    fn space(&self) -> std::io::Result<Space>;
}

/// The disk that a directory is on.
#[derive(Debug, Clone)]
pub struct DiskOf(pub PathBuf);

impl Disk for DiskOf {
    fn space(&self) -> std::io::Result<Space> {
        let found = nix::sys::statvfs::statvfs(&self.0)?;
        let block = found.fragment_size();
        Ok(Space {
            total: found.blocks().saturating_mul(block),
            // What is kept for root is not ours.
            free: found.blocks_available().saturating_mul(block),
        })
    }
}

/// A disk that is as full as a test says.
#[cfg(test)]
#[derive(Debug)]
pub struct ManualDisk(std::sync::Mutex<Space>);

#[cfg(test)]
impl ManualDisk {
    /// A terabyte of which nothing is used.
    pub fn new() -> Self {
        Self(std::sync::Mutex::new(Space { total: 1 << 40, free: 1 << 40 }))
    }

    /// So much is free now.
    pub fn set_free(&self, free: u64) {
        self.0.lock().expect("no panic while it is held").free = free;
    }
}

#[cfg(test)]
impl Disk for ManualDisk {
    fn space(&self) -> std::io::Result<Space> {
        Ok(*self.0.lock().expect("no panic while it is held"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directorys_disk_has_space() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let Space { total, free } = DiskOf(directory.path().to_owned()).space().expect("a disk");
        assert!(total > 1 << 20 && free <= total, "{free} of {total}");
        DiskOf(directory.path().join("none")).space().expect_err("no directory, no disk");
    }
}
