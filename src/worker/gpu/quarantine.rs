//! GPUs that stay withheld until the host was booted again or a person releases them: `quarantine.json` in the work
//! directory, so that neither the agent's end nor an upgrade forgets them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use app::domain::time::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::gate::Broken;
use crate::files::write_atomic;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Why, in words.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// The kernel's id of the boot in which it happened.
    boot: String,
}

/// All of them by GPU.
pub type Entries = BTreeMap<String, Entry>;

/// A file as it was written once: its number and its date. Each change makes a new file, and two of them may bear one date, as
/// the kernel dates files by a clock that ticks every few milliseconds.
type Version = (u64, SystemTime);

/// The file. An agent and a person's command may both change it, so each change is made under a lock, from what is there.
#[derive(Debug)]
pub struct Quarantine {
    path: PathBuf,
    boot: String,
    /// What the file said, and which file that was.
    known: Option<(Option<Version>, Entries)>,
}

impl Quarantine {
    /// Of a work directory, in this boot of the host.
    pub fn at(work_dir: &Path, host_boot: &str) -> Self {
        // After it stands what differs for each start of a container, which repairs no GPU.
        let boot = host_boot.split('/').next().unwrap_or_default().to_owned();
        Self { path: work_dir.join("quarantine.json"), boot, known: None }
    }

    /// Those of this boot, as the file says now.
    pub fn entries(&mut self) -> &Entries {
        let version = fs::metadata(&self.path).and_then(|meta| Ok((meta.ino(), meta.modified()?))).ok();
        if self.known.as_ref().is_none_or(|(known, _)| *known != version) {
            let mut entries = self.read().unwrap_or_else(|error| {
                tracing::error!("{} cannot be read, so no GPU is in quarantine: {error}", self.path.display());
                Entries::new()
            });
            entries.retain(|_, entry| entry.boot == self.boot);
            self.known = Some((version, entries));
        }
        &self.known.get_or_insert_default().1
    }

    /// Puts a GPU in; one that already is stays for its first reason.
    ///
    /// # Errors
    /// If the disk refuses: it is withheld nevertheless, for as long as this agent lives.
    pub fn add(&mut self, broken: &Broken, now: Timestamp) -> io::Result<()> {
        if self.entries().contains_key(&broken.uuid) {
            return Ok(());
        }
        let entry = Entry { reason: broken.detail.clone(), since: now, boot: self.boot.clone() };
        tracing::error!("{} is in quarantine: {}", broken.uuid, broken.detail);
        let written = self.change(|entries| {
            entries.insert(broken.uuid.clone(), entry.clone());
        });
        if written.is_err() {
            self.entries();
            self.known.get_or_insert_default().1.insert(broken.uuid.clone(), entry);
        }
        written
    }

    /// Lets a GPU out. Whether it was in.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn release(&mut self, uuid: &str) -> io::Result<bool> {
        let mut was_in = false;
        self.change(|entries| was_in = entries.remove(uuid).is_some())?;
        Ok(was_in)
    }

    fn change(&mut self, change: impl FnOnce(&mut Entries)) -> io::Result<()> {
        let file = File::create(self.path.with_extension("lock"))?;
        let _lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| io::Error::from(errno))?;
        let mut entries = self.read()?;
        entries.retain(|_, entry| entry.boot == self.boot);
        change(&mut entries);
        write_atomic(&self.path, serde_json::to_string_pretty(&entries)?.as_bytes(), true)?;
        self.known = None;
        Ok(())
    }

    fn read(&self) -> io::Result<Entries> {
        match fs::read(&self.path) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Entries::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_until_the_next_boot_or_a_persons_word() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let broken = |uuid: &str, detail: &str| Broken { uuid: uuid.to_owned(), detail: detail.to_owned() };
        let mut agent = Quarantine::at(temp.path(), "boot-1/77");
        agent.add(&broken("GPU-1", "XID 79"), Timestamp(5))?;
        agent.add(&broken("GPU-1", "something later"), Timestamp(6))?;
        agent.add(&broken("GPU-2", "XID 48"), Timestamp(7))?;
        // Another start of the container, on the same boot.
        let mut next = Quarantine::at(temp.path(), "boot-1/99");
        let said: Vec<_> = next.entries().iter().map(|(uuid, entry)| (uuid.as_str(), entry.reason.as_str())).collect();
        assert_eq!(said, [("GPU-1", "XID 79"), ("GPU-2", "XID 48")]);
        assert!(next.release("GPU-1")? && !next.release("GPU-1")?);
        assert_eq!(agent.entries().keys().collect::<Vec<_>>(), ["GPU-2"]);
        assert!(Quarantine::at(temp.path(), "boot-2/77").entries().is_empty());
        Ok(())
    }

    #[test]
    fn what_another_process_changes_at_once_is_seen() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let broken = Broken { uuid: "GPU-1".to_owned(), detail: "XID 48".to_owned() };
        let (mut agent, mut person) = (Quarantine::at(temp.path(), "b/1"), Quarantine::at(temp.path(), "b/1"));
        // Within one tick of the clock by which the kernel dates files.
        for round in 0..30 {
            agent.add(&broken, Timestamp(round))?;
            assert!(agent.entries().contains_key("GPU-1"), "round {round}");
            assert!(person.release("GPU-1")?);
            assert!(agent.entries().is_empty(), "round {round}");
        }
        Ok(())
    }

    #[test]
    fn a_disk_that_refuses_does_not_let_it_out() {
        let mut quarantine = Quarantine::at(Path::new("/does/not/exist"), "b/1");
        let broken = Broken { uuid: "GPU-1".to_owned(), detail: "XID 79".to_owned() };
        assert!(quarantine.add(&broken, Timestamp(5)).is_err());
        assert!(quarantine.entries().contains_key("GPU-1"));
    }
}
