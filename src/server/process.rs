//! What this process takes of its machine, as Linux tells it.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{SysconfVar, sysconf};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// Open files and sockets.
    pub files: u64,
    /// How many of them it may have.
    pub most_files: u64,
}

/// What it takes now; none where there is no `/proc`.
pub fn used() -> Option<Used> {
    let pages: u64 = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    let page = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
    let files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    let (most_files, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    Some(Used { memory: pages * page, files, most_files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_takes_something() {
        let used = used().expect("Linux");
        assert!(used.memory > 1 << 20 && used.files > 2 && used.most_files >= used.files, "{used:?}");
    }
}
