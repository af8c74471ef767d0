//! What bounds an attempt: of its disk, of its time, and of its lease.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};

use super::{AttemptDir, VERSION};
use crate::cli::bounds::WebhookBounds;

/// Space that is held back for the last words of a full disk, in bytes.
const RESERVE: i64 = 64 * 1024;

/// A part of `spec.json`. An older agent's has none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// What `trainer.log` may take of the disk, in bytes.
    pub spool_bytes: u64,
    /// Between asking the trainer to stop and killing it, if an order does not say.
    pub stop_grace_seconds: u64,
    /// What is read of its events.
    pub webhook: WebhookBounds,
}

impl Default for Limits {
    fn default() -> Self {
        Self { spool_bytes: 1 << 30, stop_grace_seconds: 30, webhook: WebhookBounds::default() }
    }
}

/// Where an attempt's control group is made, and what it is held to: a part of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The group above the agent's and those of its jobs.
    pub base: PathBuf,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// What an attempt may take of its host's disk: a part of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDisk {
    /// In bytes.
    pub bytes: u64,
    /// The home of whose job it is, where more may be than this attempt's.
    pub home: PathBuf,
}

/// What was given up of the files that only grow: `log.json`. The bytes before are gone, and read as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floors {
    /// [`VERSION`].
    pub version: u32,
    /// The first byte of `trainer.log` that is still there.
    pub log: u64,
    /// The same of `events.jsonl`.
    #[serde(default)]
    pub events: u64,
}

impl Default for Floors {
    fn default() -> Self {
        Self { version: VERSION, log: 0, events: 0 }
    }
}

/// Until when an exclusive job may run: `lease.json`. By the clock that runs on while the host sleeps, from its boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// [`VERSION`].
    pub version: u32,
    /// Its end, in ms.
    pub end_boot_ms: u64,
    /// How long it is when it is new, in ms.
    pub timeout_ms: u64,
}

/// How the disk was when the trainer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The least that was free in the last minute, in bytes.
    pub free_bytes: u64,
    /// Of the disk that this is on.
    pub directory: PathBuf,
}

/// How much a disk has for who is not root, in bytes.
pub fn free_bytes(dir: &Path) -> io::Result<u64> {
    let disk = nix::sys::statvfs::statvfs(dir)?;
    Ok(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

impl AttemptDir {
    /// What is gone of the log and the events: nothing, as long as nobody has said so.
    pub fn floors(&self) -> Floors {
        self.read("log.json").ok().flatten().unwrap_or_default()
    }

    fn reserve(&self) -> PathBuf {
        self.join("reserve")
    }

    /// Holds space back, if none is yet.
    pub fn hold_reserve(&self) -> io::Result<()> {
        if self.reserve().exists() {
            return Ok(());
        }
        let file = File::create(self.reserve())?;
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE) {
            // A file system that promises nothing has to be written to.
            Err(nix::errno::Errno::EOPNOTSUPP) => file.write_all_at(&vec![1; 64 * 1024], 0),
            other => Ok(other?),
        }
    }

    /// Does it, and if the disk is full, once more with what was held back.
    pub(super) fn with_reserve<T>(&self, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match work() {
            Err(error) if error.kind() == io::ErrorKind::StorageFull && fs::remove_file(self.reserve()).is_ok() => {
                work()
            }
            done => done,
        }
    }

    /// Writes down until when an exclusive job may run. Where there is no room for a new file, over the old one: a reader
    /// that finds half of it keeps what it knew.
    pub fn write_lease(&self, lease: &Lease) -> io::Result<()> {
        let Err(error) = self.write_soon("lease.json", lease) else { return Ok(()) };
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
    fn an_older_spec_has_the_usual_limits() -> io::Result<()> {
        let limits: Limits = serde_json::from_str("{}")?;
        assert_eq!((limits.spool_bytes, limits.stop_grace_seconds), (1 << 30, 30));
        Ok(())
    }

    #[test]
    fn the_reserve_is_given_up_once() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let full = || Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull));
        let when_given_up = || if dir.reserve().exists() { full() } else { Ok(()) };
        dir.hold_reserve()?;
        assert!(fs::metadata(dir.reserve())?.len() == 64 * 1024);
        dir.with_reserve(when_given_up)?;
        assert!(dir.with_reserve(full).is_err_and(|error| error.kind() == io::ErrorKind::StorageFull));
        dir.hold_reserve()?;
        assert!(dir.with_reserve(|| Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied))).is_err());
        assert!(dir.reserve().exists(), "another error is no reason");
        Ok(())
    }

    #[test]
    fn a_lease_is_replaced() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        for end_boot_ms in [123_456_789, 5] {
            let lease = Lease { version: VERSION, end_boot_ms, timeout_ms: 4_000 };
            dir.write_lease(&lease)?;
            assert_eq!(dir.read("lease.json")?, Some(lease));
            // Nothing new can be put beside it.
            let _ = fs::create_dir(dir.join("lease.json.new"));
        }
        Ok(())
    }
}
