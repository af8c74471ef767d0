//! Whether the kernel killed something for want of memory, as far as control groups tell.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::{Cgroup, counter, own};

/// What was counted before the trainer began.
pub struct OutOfMemory {
    counts: Vec<(PathBuf, u64)>,
    /// The trainer's own group, if its memory is limited, and the limit in bytes.
    limited: Option<(PathBuf, u64)>,
}

impl OutOfMemory {
    /// Before the trainer begins. Its own group counts only where memory is accounted for it; the group that it shares with
    /// this process, of either version, counts what happened to anybody there.
    pub fn before(group: Option<&Cgroup>) -> Self {
        let files = group.map(|group| group.path().join("memory.events")).into_iter();
        let files = files.chain(own(None).map(|own| own.join("memory.events")));
        let files = files.chain(own(Some("memory")).map(|own| own.join("memory.oom_control")));
        let counts = files.filter_map(|file| Some((file.clone(), count(&file, "oom_kill")?))).collect();
        Self { counts, limited: group.and_then(|group| Some((group.path().to_owned(), limit(group.path())?))) }
    }

    /// Whether it has happened since. The trainer's own group must still be there.
    pub fn has_killed(&self) -> bool {
        self.counts.iter().any(|(file, before)| count(file, "oom_kill").is_some_and(|now| now > *before))
    }

    /// The trainer's own limit in bytes, if that was what it ran into: its group had none to give while the host had. The group
    /// must still be there.
    pub fn limit_reached(&self) -> Option<u64> {
        let (group, limit) = self.limited.as_ref()?;
        count(&group.join("memory.events"), "oom").is_some_and(|times| times > 0).then_some(*limit)
    }
}

fn limit(group: &Path) -> Option<u64> {
    fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

fn count(file: &Path, name: &str) -> Option<u64> {
    counter(&fs::read_to_string(file).ok()?, name)
}
