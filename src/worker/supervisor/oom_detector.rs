//! Whether the kernel killed a process because memory was full, according to control groups.

use std::fs;
use std::path::{Path, PathBuf};

use crate::worker::cgroup::{Cgroup, own_cgroup, parse_counter};

/// The counters before the trainer started.
pub struct OomDetector {
    counts: Vec<(PathBuf, u64)>,
    /// The trainer's own group, if its memory is limited, and the limit in bytes.
    limited: Option<(PathBuf, u64)>,
}

impl OomDetector {
    /// Call before the trainer starts. Its own group counts only if its memory is accounted; the group outside it, which the
    /// agent is in, and that of version 1 count events of all their processes.
    pub fn start(group: Option<&Cgroup>, outside: Option<&Path>) -> Self {
        let files = group.map(Cgroup::path).into_iter().chain(outside).map(|group| group.join("memory.events"));
        let files = files.chain(own_cgroup(Some("memory")).map(|own_group| own_group.join("memory.oom_control")));
        let counts = files.filter_map(|file| Some((file.clone(), read_count(&file, "oom_kill")?))).collect();
        Self { counts, limited: group.and_then(|group| Some((group.path().to_owned(), memory_limit(group.path())?))) }
    }

    /// Whether the kernel has killed a process since the start. The trainer's own group must still exist.
    pub fn has_killed(&self) -> bool {
        self.counts.iter().any(|(file, before)| read_count(file, "oom_kill").is_some_and(|now| now > *before))
    }

    /// The trainer's own limit in bytes, if it was exceeded: its group was full while the host had memory. The group
    /// must still exist.
    pub fn limit_reached(&self) -> Option<u64> {
        let (group, limit) = self.limited.as_ref()?;
        read_count(&group.join("memory.events"), "oom").is_some_and(|count| count > 0).then_some(*limit)
    }
}

fn memory_limit(group: &Path) -> Option<u64> {
    fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()
}

fn read_count(file: &Path, name: &str) -> Option<u64> {
    parse_counter(&fs::read_to_string(file).ok()?, name)
}
