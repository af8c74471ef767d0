//! Whether the kernel killed something for want of memory, as far as control groups tell.

use std::fs;
use std::path::PathBuf;

use super::cgroup::{Cgroup, counter, own};

/// What was counted before the trainer began.
pub struct OutOfMemory {
    counts: Vec<(PathBuf, u64)>,
}

impl OutOfMemory {
    /// Before the trainer begins. Its own group counts only where memory is accounted for it; the group that it shares with
    /// this process, of either version, counts what happened to anybody there.
    pub fn before(group: Option<&Cgroup>) -> Self {
        let files = group.map(|group| group.path().join("memory.events")).into_iter();
        let files = files.chain(own(None).map(|own| own.join("memory.events")));
        let files = files.chain(own(Some("memory")).map(|own| own.join("memory.oom_control")));
        Self { counts: files.filter_map(|file| Some((file.clone(), count(&file)?))).collect() }
    }

    /// Whether it has happened since.
    pub fn has_killed(&self) -> bool {
        self.counts.iter().any(|(file, before)| count(file).is_some_and(|now| now > *before))
    }
}

fn count(file: &PathBuf) -> Option<u64> {
    counter(&fs::read_to_string(file).ok()?, "oom_kill")
}
