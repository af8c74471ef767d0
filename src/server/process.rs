//! Resource usage of this process, from Linux.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// Open files and sockets.
    pub files: u64,
    /// The limit of open files.
    pub max_files: u64,
}

/// Returns the current usage; `None` without `/proc`.
pub fn current_usage() -> Option<ProcessUsage> {
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
    let files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    let (max_files, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    Some(ProcessUsage { memory: pages * page, files, max_files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_usage_is_not_zero() {
        let usage = current_usage().expect("Linux");
        assert!(usage.memory > 1 << 20 && usage.files > 2 && usage.max_files >= usage.files, "{usage:?}");
    }
}
