//! Processes from `/proc`. A process is identified by its PID *and* its start time, because PIDs are reused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::sync::LazyLock;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// One process, unique while the host is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcId {
    pub pid: i32,
    /// Its start in clock ticks since boot.
    pub start: u64,
}

/// The fields of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcStat {
    pub parent: i32,
    /// One letter; `Z` is a zombie.
    pub state: char,
    /// See [`ProcId::start`].
    pub start: u64,
}

/// Parses a `stat` line (proc(5)); the name in brackets may itself contain brackets and spaces.
pub fn parse_stat(line: &str) -> Option<ProcStat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; `parent` was field 4.
    let start = fields.nth(17)?.parse().ok()?;
    Some(ProcStat { parent, state, start })
}

fn read_stat(pid: i32) -> Option<ProcStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

impl ProcId {
    /// The process that has this PID now.
    pub fn from_pid(pid: i32) -> Option<Self> {
        read_stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// Whether it is still running; false if that is unknown.
    pub fn is_alive(self) -> bool {
        self.check_alive().unwrap_or(false)
    }

    /// Whether it is still running.
    ///
    /// # Errors
    /// If that cannot be determined now.
    pub fn check_alive(self) -> io::Result<bool> {
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(line) => Ok(parse_stat(&line).is_some_and(|stat| stat.start == self.start && stat.state != 'Z')),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a signal, if it is still the same process.
    pub fn signal(self, signal: Signal) {
        if self.is_alive() {
            // It may have exited since.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Sends a signal to a whole process group, whose leader must not have been reaped yet.
pub fn signal_group(leader: i32, signal: Signal) {
    let _ = killpg(Pid::from_raw(leader), signal);
}

/// All visible processes.
fn list_processes() -> BTreeMap<i32, ProcStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, read_stat(pid)?)))
        .collect()
}

/// The running descendants of a process, without itself.
pub fn descendants(root: i32) -> Vec<ProcId> {
    let all = list_processes();
    descendant_pids(&all, root)
        .into_iter()
        .filter_map(|pid| all.get(&pid).filter(|stat| stat.state != 'Z').map(|stat| ProcId { pid, start: stat.start }))
        .collect()
}

fn descendant_pids(all: &BTreeMap<i32, ProcStat>, root: i32) -> BTreeSet<i32> {
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

/// The running processes whose environment contains this `NAME=value`.
pub fn find_by_environment(entry: &str) -> Vec<ProcId> {
    let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
    list_processes()
        .into_iter()
        .filter(|(pid, stat)| *pid != own_pid && stat.state != 'Z')
        .filter(|(pid, _)| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|found| found == entry.as_bytes()))
        })
        .map(|(pid, stat)| ProcId { pid, start: stat.start })
        .collect()
}

/// Whether a process has this `NAME=value` in its environment; `None` if there is no such process, or it is unknown.
pub fn has_environment_entry(pid: i32, entry: &str) -> Option<bool> {
    ProcId::from_pid(pid).filter(|process| process.is_alive())?;
    match fs::read(format!("/proc/{pid}/environ")) {
        // It is exiting and no longer has an environment.
        Ok(environ) if environ.is_empty() => None,
        Ok(environ) => Some(environ.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())),
        // It belongs to another user; the agent's processes do not.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(false),
        Err(_) => None,
    }
}

/// Changes whenever every process here was killed from outside: the kernel's boot ID, and the start of process 1, which
/// in a container is the container's own.
pub fn host_boot_id() -> &'static str {
    static BOOT_ID: LazyLock<String> = LazyLock::new(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        format!("{}/{}", boot.trim(), read_stat(1).map_or(0, |first| first.start))
    });
    &BOOT_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_with_special_characters_is_parsed() {
        let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1";
        assert_eq!(parse_stat(line), Some(ProcStat { parent: 7, state: 'S', start: 987_654 }));
        assert_eq!(parse_stat("42 (x) S 7"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn process_is_identified_by_pid_and_start_time() {
        let own = ProcId::from_pid(i32::try_from(std::process::id()).unwrap_or_default());
        assert!(own.is_some_and(ProcId::is_alive));
        assert!(own.is_some_and(|own| !ProcId { start: own.start + 1, ..own }.is_alive()));
    }

    #[test]
    fn environment_is_known_for_living_processes() {
        let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
        assert_eq!(has_environment_entry(own_pid, "NO_SUCH_NAME=value"), Some(false));
        // The initial environment, before any test could change it.
        let entry = std::env::vars().next().map(|(name, value)| format!("{name}={value}")).unwrap_or_default();
        assert_eq!(has_environment_entry(own_pid, &entry), Some(true), "{entry}");
        assert_eq!(has_environment_entry(i32::MAX, &entry), None);
    }

    #[test]
    fn indirect_descendants_are_found() {
        let entry = |parent| ProcStat { parent, state: 'S', start: 1 };
        let all = BTreeMap::from([(1, entry(0)), (2, entry(1)), (3, entry(2)), (4, entry(3)), (5, entry(1))]);
        assert_eq!(descendant_pids(&all, 2), BTreeSet::from([3, 4]));
        assert_eq!(descendant_pids(&all, 5), BTreeSet::new());
    }
}
