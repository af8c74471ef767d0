//! Processes as `/proc` shows them. A process is its id *and* its start time: ids are used again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// One process for as long as the host is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcId {
    /// Its id.
    pub pid: i32,
    /// Its start in clock ticks since the host's.
    pub start: u64,
}

/// What one line of `/proc/<pid>/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The parent.
    pub parent: i32,
    /// One letter; `Z` has ended and waits for its parent to notice.
    pub state: char,
    /// See [`ProcId::start`].
    pub start: u64,
}

/// Reads a `stat` line (proc(5)); the name in brackets may itself hold brackets and blanks.
pub fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; `parent` was field 4.
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { parent, state, start })
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

impl ProcId {
    /// The process that has this id now.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// Whether it still runs, as far as can be seen.
    pub fn is_alive(self) -> bool {
        self.lives().unwrap_or(false)
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// If that cannot be seen now.
    pub fn lives(self) -> io::Result<bool> {
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(line) => Ok(parse_stat(&line).is_some_and(|now| now.start == self.start && now.state != 'Z')),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Signals it, if it still is the same process.
    pub fn signal(self, signal: Signal) {
        if self.is_alive() {
            // It may have ended since; then there is nobody to tell.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Signals a whole process group, whose leader must not have been reaped yet.
pub fn signal_group(leader: i32, signal: Signal) {
    let _ = killpg(Pid::from_raw(leader), signal);
}

/// Every process that is visible here.
fn all() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect()
}

/// The running descendants of a process, itself not included.
pub fn descendants(root: i32) -> Vec<ProcId> {
    let all = all();
    below(&all, root)
        .into_iter()
        .filter_map(|pid| all.get(&pid).filter(|stat| stat.state != 'Z').map(|stat| ProcId { pid, start: stat.start }))
        .collect()
}

fn below(all: &BTreeMap<i32, Stat>, root: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in all {
            if stat.parent == parent && *pid != root && found.insert(*pid) {
                parents.push(*pid);
            }
        }
    }
    found
}

/// The running processes whose environment holds this `NAME=value`.
pub fn with_environment(entry: &str) -> Vec<ProcId> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    all()
        .into_iter()
        .filter(|(pid, stat)| *pid != own && stat.state != 'Z')
        .filter(|(pid, _)| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|found| found == entry.as_bytes()))
        })
        .map(|(pid, stat)| ProcId { pid, start: stat.start })
        .collect()
}

/// Whether a living process carries this `NAME=value`; none if there is no such process, or nobody can tell.
pub fn carries(pid: i32, entry: &str) -> Option<bool> {
    ProcId::of(pid).filter(|process| process.is_alive())?;
    match fs::read(format!("/proc/{pid}/environ")) {
        // It is ending, and has none any more.
        Ok(environ) if environ.is_empty() => None,
        Ok(environ) => Some(environ.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())),
        // Somebody else's; what we start is of our own user.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(false),
        Err(_) => None,
    }
}

/// What differs once every process here was ended from outside: the kernel's id of this boot, and the start of process 1,
/// which in a container is the container's own.
pub fn host_boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}/{}", boot.trim(), stat(1).map_or(0, |first| first.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_an_odd_name() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1";
        assert_eq!(parse_stat(line), Some(Stat { parent: 7, state: 'S', start: 987_654 }));
        assert_eq!(parse_stat("42 (x) S 7"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn the_own_process_is_alive_and_another_start_is_not() {
        let own = ProcId::of(i32::try_from(std::process::id()).unwrap_or_default());
        assert!(own.is_some_and(ProcId::is_alive));
        assert!(own.is_some_and(|own| !ProcId { start: own.start + 1, ..own }.is_alive()));
    }

    #[test]
    fn what_a_process_carries_is_known_of_living_ones() {
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        assert_eq!(carries(own, "NO_SUCH_NAME=value"), Some(false));
        // As the system started it, which is before any test could change it.
        let entry = std::env::vars().next().map(|(name, value)| format!("{name}={value}")).unwrap_or_default();
        assert_eq!(carries(own, &entry), Some(true), "{entry}");
        assert_eq!(carries(i32::MAX, &entry), None);
    }

    #[test]
    fn descendants_of_descendants_count() {
        let entry = |parent| Stat { parent, state: 'S', start: 1 };
        let all = BTreeMap::from([(1, entry(0)), (2, entry(1)), (3, entry(2)), (4, entry(3)), (5, entry(1))]);
        assert_eq!(below(&all, 2), BTreeSet::from([3, 4]));
        assert_eq!(below(&all, 5), BTreeSet::new());
    }
}
