//! The memory limit of a job.

use std::fs;
use std::path::Path;

use crate::worker::args::limits::JobMemoryLimit;

/// Reserve for the agent and the system: a fraction of the memory, between these bounds in bytes; never more than half.
const RESERVE_DIVISOR: u64 = 20;
const MIN_RESERVE_BYTES: u64 = 512 << 20;
const MAX_RESERVE_BYTES: u64 = 4 << 30;

impl JobMemoryLimit {
    /// The limit per job, for this much memory and this many jobs.
    pub fn per_job_bytes(self, total: Option<u64>, jobs: u32) -> Option<u64> {
        match self {
            Self::EqualShare => total.map(|all| (all - reserve_bytes(all)) / u64::from(jobs.max(1))),
            Self::Unlimited => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

fn reserve_bytes(all: u64) -> u64 {
    (all / RESERVE_DIVISOR).clamp(MIN_RESERVE_BYTES, MAX_RESERVE_BYTES).min(all / 2)
}

/// The host's memory, or the lowest limit of this group and its parents, in bytes.
pub fn total_memory(group: &Path) -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let host = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let host = host.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10;
    Some(lowest_limit(group).map_or(host, |limit| limit.min(host)))
}

/// The lowest limit of a group and its parents.
pub fn lowest_limit(group: &Path) -> Option<u64> {
    let groups = group.ancestors().take_while(|group| group.join("cgroup.type").exists());
    // "max" means unlimited.
    groups.filter_map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()).min()
}
