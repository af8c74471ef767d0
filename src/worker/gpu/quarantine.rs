//! GPUs that stay unavailable until the host is rebooted or a user releases them: `quarantine.json` in the work
//! directory, so that it survives restarts and upgrades of the agent.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use app::domain::time::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::health::GpuFailure;
use crate::worker::files::write_atomic;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineEntry {
    pub reason: String,
    pub since: Timestamp,
    /// The kernel's boot ID at that time.
    boot: String,
}

/// Entries by GPU.
pub type QuarantineEntries = BTreeMap<String, QuarantineEntry>;

/// Identifies one version of the file: inode and modification time. Each change creates a new file, and two of them may
/// have the same time, because the kernel's file times have a resolution of milliseconds.
type FileVersion = (u64, SystemTime);

/// The file. An agent and a user's command may both change it, so each change is made under a lock, from its current
/// content.
#[derive(Debug)]
pub struct Quarantine {
    path: PathBuf,
    boot_id: String,
    /// The file's content, and its version.
    cached: Option<(Option<FileVersion>, QuarantineEntries)>,
}

impl Quarantine {
    /// For a work directory, in this boot of the host.
    pub fn open(work_dir: &Path, host_boot: &str) -> Self {
        // After the slash follows what differs for each start of a container, which repairs no GPU.
        let boot = host_boot.split('/').next().unwrap_or_default().to_owned();
        Self { path: work_dir.join("quarantine.json"), boot_id: boot, cached: None }
    }

    /// The entries of this boot, as the file says now.
    pub fn entries(&mut self) -> &QuarantineEntries {
        let version = fs::metadata(&self.path).and_then(|meta| Ok((meta.ino(), meta.modified()?))).ok();
        if self.cached.as_ref().is_none_or(|(cached_version, _)| *cached_version != version) {
            let mut entries = self.read().unwrap_or_else(|error| {
                tracing::error!("cannot read {}, so no GPU is in quarantine: {error}", self.path.display());
                QuarantineEntries::new()
            });
            entries.retain(|_, entry| entry.boot == self.boot_id);
            self.cached = Some((version, entries));
        }
        &self.cached.get_or_insert_default().1
    }

    /// Adds a GPU; an existing entry keeps its first reason.
    ///
    /// # Errors
    /// On an I/O error: the GPU is unavailable nevertheless, until this agent exits.
    pub fn add(&mut self, failure: &GpuFailure, now: Timestamp) -> io::Result<()> {
        if self.entries().contains_key(&failure.uuid) {
            return Ok(());
        }
        let entry = QuarantineEntry { reason: failure.detail.clone(), since: now, boot: self.boot_id.clone() };
        tracing::error!("{} is in quarantine: {}", failure.uuid, failure.detail);
        let result = self.update(|entries| {
            entries.insert(failure.uuid.clone(), entry.clone());
        });
        if result.is_err() {
            self.entries();
            self.cached.get_or_insert_default().1.insert(failure.uuid.clone(), entry);
        }
        result
    }

    /// Releases a GPU. Returns whether it was in quarantine.
    ///
    /// # Errors
    /// On an I/O error.
    pub fn release(&mut self, uuid: &str) -> io::Result<bool> {
        let mut was_quarantined = false;
        self.update(|entries| was_quarantined = entries.remove(uuid).is_some())?;
        Ok(was_quarantined)
    }

    fn update(&mut self, change: impl FnOnce(&mut QuarantineEntries)) -> io::Result<()> {
        let file = File::create(self.path.with_extension("lock"))?;
        let _lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| io::Error::from(errno))?;
        let mut entries = self.read()?;
        entries.retain(|_, entry| entry.boot == self.boot_id);
        change(&mut entries);
        write_atomic(&self.path, serde_json::to_string_pretty(&entries)?.as_bytes(), true)?;
        self.cached = None;
        Ok(())
    }

    fn read(&self) -> io::Result<QuarantineEntries> {
        match fs::read(&self.path) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(QuarantineEntries::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarantine_lasts_until_reboot_or_release() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let failure = |uuid: &str, detail: &str| GpuFailure { uuid: uuid.to_owned(), detail: detail.to_owned() };
        let mut agent = Quarantine::open(temp.path(), "boot-1/77");
        agent.add(&failure("GPU-1", "XID 79"), Timestamp(5))?;
        agent.add(&failure("GPU-1", "something later"), Timestamp(6))?;
        agent.add(&failure("GPU-2", "XID 48"), Timestamp(7))?;
        // Another start of the container, in the same boot.
        let mut next = Quarantine::open(temp.path(), "boot-1/99");
        let reasons: Vec<_> =
            next.entries().iter().map(|(uuid, entry)| (uuid.as_str(), entry.reason.as_str())).collect();
        assert_eq!(reasons, [("GPU-1", "XID 79"), ("GPU-2", "XID 48")]);
        assert!(next.release("GPU-1")? && !next.release("GPU-1")?);
        assert_eq!(agent.entries().keys().collect::<Vec<_>>(), ["GPU-2"]);
        assert!(Quarantine::open(temp.path(), "boot-2/77").entries().is_empty());
        Ok(())
    }

    #[test]
    fn changes_by_another_process_are_seen_immediately() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let failure = GpuFailure { uuid: "GPU-1".to_owned(), detail: "XID 48".to_owned() };
        let (mut agent, mut doctor) = (Quarantine::open(temp.path(), "b/1"), Quarantine::open(temp.path(), "b/1"));
        // Within one tick of the kernel's clock for file times.
        for round in 0..30 {
            agent.add(&failure, Timestamp(round))?;
            assert!(agent.entries().contains_key("GPU-1"), "round {round}");
            assert!(doctor.release("GPU-1")?);
            assert!(agent.entries().is_empty(), "round {round}");
        }
        Ok(())
    }

    #[test]
    fn write_error_does_not_end_the_quarantine() {
        let mut quarantine = Quarantine::open(Path::new("/does/not/exist"), "b/1");
        let failure = GpuFailure { uuid: "GPU-1".to_owned(), detail: "XID 79".to_owned() };
        assert!(quarantine.add(&failure, Timestamp(5)).is_err());
        assert!(quarantine.entries().contains_key("GPU-1"));
    }
}
