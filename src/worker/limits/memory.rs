//! How much memory a job may take.

use std::fs;
use std::path::Path;

/// What agent and system keep: a part of it all, between these, in bytes; never more than half.
const RESERVE_PART: u64 = 20;
const LEAST_RESERVE: u64 = 512 << 20;
const MOST_RESERVE: u64 = 4 << 30;

/// What the owner says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobMemory {
    /// An equal part for each job, less a reserve.
    Usual,
    /// No limit.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

impl JobMemory {
    /// The limit of each of so many jobs, of so much memory.
    pub fn of_each(self, there_is: Option<u64>, jobs: u32) -> Option<u64> {
        match self {
            Self::Usual => there_is.map(|all| (all - reserve(all)) / u64::from(jobs.max(1))),
            Self::Unlimited => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

fn reserve(all: u64) -> u64 {
    (all / RESERVE_PART).clamp(LEAST_RESERVE, MOST_RESERVE).min(all / 2)
}

/// The host's memory, or what the groups down to this one leave of it, in bytes.
pub fn there_is(group: &Path) -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let host = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let host = host.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10;
    Some(least(group).map_or(host, |limit| limit.min(host)))
}

/// The least limit of a group and those above it.
pub fn least(group: &Path) -> Option<u64> {
    let groups = group.ancestors().take_while(|group| group.join("cgroup.type").exists());
    // "max" is none.
    groups.filter_map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()).min()
}
