//! The only place where the free space of a disk is read.

use std::path::PathBuf;

/// The size of a disk, and the space that this user can still fill, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    pub total: u64,
    pub free: u64,
}

/// A source of free space; tests control theirs.
pub trait DiskProbe: Send + Sync {
    /// The current space on the data directory's disk.
    fn space(&self) -> std::io::Result<DiskSpace>;
}

/// The disk of a directory.
#[derive(Debug, Clone)]
pub struct PathDisk(pub PathBuf);

impl DiskProbe for PathDisk {
    fn space(&self) -> std::io::Result<DiskSpace> {
        let stats = nix::sys::statvfs::statvfs(&self.0)?;
        let block = stats.fragment_size();
        Ok(DiskSpace {
            total: stats.blocks().saturating_mul(block),
            // Blocks reserved for root are not available.
            free: stats.blocks_available().saturating_mul(block),
        })
    }
}

/// A disk whose free space tests set.
#[cfg(test)]
#[derive(Debug)]
pub struct ManualDisk(std::sync::Mutex<DiskSpace>);

#[cfg(test)]
impl ManualDisk {
    /// An empty disk of a terabyte.
    pub fn new() -> Self {
        Self(std::sync::Mutex::new(DiskSpace { total: 1 << 40, free: 1 << 40 }))
    }

    /// Sets the free space.
    pub fn set_free(&self, free: u64) {
        self.0.lock().expect("no panic while it is held").free = free;
    }
}

#[cfg(test)]
impl DiskProbe for ManualDisk {
    fn space(&self) -> std::io::Result<DiskSpace> {
        Ok(*self.0.lock().expect("no panic while it is held"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_reports_its_disk_space() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let DiskSpace { total, free } = PathDisk(directory.path().to_owned()).space().expect("a disk");
        assert!(total > 1 << 20 && free <= total, "{free} of {total}");
        PathDisk(directory.path().join("none")).space().expect_err("the directory does not exist");
    }
}
