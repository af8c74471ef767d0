//! Limits of an attempt: its disk usage, grace period and lease.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};

use super::{AttemptDir, VERSION};
use crate::worker::args::input_limits::WebhookLimits;

/// Space reserved for recording the end when the disk is full, in bytes.
const RESERVE_BYTES: i64 = 64 * 1024;

/// Part of `spec.json`. Missing in that of an older agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptLimits {
    /// Max size of `trainer.log` on disk, in bytes.
    pub spool_bytes: u64,
    /// Time between asking the trainer to stop and killing it, if the stop request has none.
    pub stop_grace_seconds: u64,
    /// Limits of its events.
    pub webhook: WebhookLimits,
}

impl Default for AttemptLimits {
    fn default() -> Self {
        Self { spool_bytes: 1 << 30, stop_grace_seconds: 30, webhook: WebhookLimits::default() }
    }
}

/// Where an attempt's control group is created, and its limits. Part of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCgroup {
    /// The group above those of the agent and its jobs.
    pub base: PathBuf,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// Max disk usage of an attempt. Part of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDiskLimit {
    pub bytes: u64,
    /// Home directory of the job's user, which other attempts may use too.
    pub home: PathBuf,
}

/// How much of the append-only files was dropped: `log.json`. Dropped bytes read as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruncationOffsets {
    pub version: u32,
    /// Offset of the first byte of `trainer.log` that is kept.
    pub log: u64,
    /// The same for `events.jsonl`.
    #[serde(default)]
    pub events: u64,
}

impl Default for TruncationOffsets {
    fn default() -> Self {
        Self { version: VERSION, log: 0, events: 0 }
    }
}

/// Until when an exclusive job may run: `lease.json`. Measured since boot, including suspend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    pub version: u32,
    /// When it expires, in ms.
    pub end_boot_ms: u64,
    /// Duration of a new lease, in ms.
    pub timeout_ms: u64,
}

/// The disk when the trainer exited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskAtExit {
    /// Minimum of free space in the last minute, in bytes.
    pub free_bytes: u64,
    /// A directory on the disk.
    pub directory: PathBuf,
}

/// Free space of a disk for users other than root, in bytes.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let disk = nix::sys::statvfs::statvfs(dir)?;
    Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

impl AttemptDir {
    /// How much of the log and the events was dropped; nothing if the file is missing.
    pub fn truncation_offsets(&self) -> TruncationOffsets {
        self.read_json("log.json").ok().flatten().unwrap_or_default()
    }

    fn reserve_path(&self) -> PathBuf {
        self.join("reserve")
    }

    /// Allocates the reserve, if there is none yet.
    pub fn allocate_reserve(&self) -> io::Result<()> {
        if self.reserve_path().exists() {
            return Ok(());
        }
        let file = File::create(self.reserve_path())?;
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
            // If the file system cannot allocate, the space is written.
            Err(nix::errno::Errno::EOPNOTSUPP) => file.write_all_at(&vec![1; 64 * 1024], 0),
            other => Ok(other?),
        }
    }

    /// Runs the write, and if the disk is full, again after freeing the reserve.
    pub(super) fn with_reserve<T>(&self, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match work() {
            Err(error)
                if error.kind() == io::ErrorKind::StorageFull && fs::remove_file(self.reserve_path()).is_ok() =>
            {
                work()
            }
            result => result,
        }
    }

    /// Records until when an exclusive job may run. If there is no space for a new file, the old one is overwritten: a
    /// reader that finds it incomplete keeps the last value.
    pub fn write_lease(&self, lease: &LeaseRecord) -> io::Result<()> {
        let Err(error) = self.write_json_unsynced("lease.json", lease) else { return Ok(()) };
        let file = fs::OpenOptions::new().write(true).open(self.join("lease.json")).map_err(|_| error)?;
        let text = serde_json::to_vec_pretty(lease)?;
        file.write_all_at(&text, 0)?;
        file.set_len(text.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_spec_gets_default_attempt_limits() -> io::Result<()> {
        let limits: AttemptLimits = serde_json::from_str("{}")?;
        assert_eq!((limits.spool_bytes, limits.stop_grace_seconds), (1 << 30, 30));
        Ok(())
    }

    #[test]
    fn reserve_is_freed_once() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let full = || Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull));
        let fail_with_reserve = || if dir.reserve_path().exists() { full() } else { Ok(()) };
        dir.allocate_reserve()?;
        assert!(fs::metadata(dir.reserve_path())?.len() == 64 * 1024);
        dir.with_reserve(fail_with_reserve)?;
        assert!(dir.with_reserve(full).is_err_and(|error| error.kind() == io::ErrorKind::StorageFull));
        dir.allocate_reserve()?;
        assert!(dir.with_reserve(|| Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied))).is_err());
        assert!(dir.reserve_path().exists(), "another error does not free the reserve");
        Ok(())
    }

    #[test]
    fn lease_file_is_replaced_also_on_a_full_disk() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        for end_boot_ms in [123_456_789, 5] {
            let lease = LeaseRecord { version: VERSION, end_boot_ms, timeout_ms: 4_000 };
            dir.write_lease(&lease)?;
            assert_eq!(dir.read_json("lease.json")?, Some(lease));
            // Blocks the temporary file.
            let _ = fs::create_dir(dir.join("lease.json.new"));
        }
        Ok(())
    }
}
