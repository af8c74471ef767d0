//! Which control group is the agent's own, whether it can give its jobs limits, and how it makes that possible.
//!
//! The kernel hands a controller on only from a group that holds no process, and lets no process back into it. So agent and
//! supervisors are in a leaf, beside the groups of jobs:
//!
//! | group | what is in it |
//! |---|---|
//! | `BASE` | nothing |
//! | `BASE/agent` | the agent and its supervisors |
//! | `BASE/st-JOB-ATTEMPT-…` | one trainer and all that it starts |
//!
//! Whoever starts the next agent must put it into the leaf too: systemd does so by `DelegateSubgroup=agent`. Where somebody
//! else would put it into the base, the start would fail, so the leaf is made here only in a container's topmost group, where
//! the agent's init process is the one who starts it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// The leaf. The unit in deploy/ has the same word.
pub const LEAF: &str = "agent";
/// What groups of attempts begin with.
pub const OF_JOBS: &str = "st-";
/// Where systemd puts what a unit starts beside its main process.
const OF_SYSTEMD: &str = ".control";
/// Processes may be born while others are moved.
const TRIES: u32 = 10;

/// A group that is the agent's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// See the module.
    pub base: PathBuf,
    /// Processes in it, all of them the agent's, which have to go into the leaf.
    strays: Vec<i32>,
}

/// The controllers that there are for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Available {
    /// Of memory.
    pub memory: bool,
    /// Of processes.
    pub pids: bool,
}

impl Owned {
    /// Judges the group that the agent is in; `is_top` if it is the topmost that can be seen.
    ///
    /// # Errors
    /// Why jobs below it can have no limits.
    pub fn find(own: &Path, is_top: bool, is_ours: impl Fn(i32) -> bool) -> Result<Self, String> {
        let base = match own.parent().filter(|_| own.ends_with(LEAF)) {
            Some(above) => above,
            None if is_top => own,
            None => {
                return Err(format!(
                    "the agent is not started in a group \"{LEAF}\" below one of its own (now {}): use the unit in deploy/ \
                     with systemd 254 or later, which has DelegateSubgroup={LEAF}",
                    own.display()
                ));
            }
        };
        let shown = base.display();
        if !base.join("cgroup.type").exists() {
            return Err(format!("{shown} is the topmost control group of the host"));
        }
        if ![base.to_owned(), base.join("cgroup.procs"), base.join("cgroup.subtree_control")].iter().all(may_write) {
            return Err(format!("{shown} is not delegated to the agent (Delegate=yes in the service's unit)"));
        }
        let unread = |error: io::Error| format!("{shown} cannot be read: {error}");
        if let Some(name) = foreign_group(base).map_err(unread)? {
            return Err(format!("{shown} has a group \"{name}\" that is not the agent's"));
        }
        let strays = processes(base).map_err(unread)?;
        match strays.iter().find(|pid| !is_ours(**pid)) {
            Some(pid) => Err(format!("process {pid}, which is not the agent's, is in {shown} too")),
            None => Ok(Self { base: base.to_owned(), strays }),
        }
    }

    /// What it can hand on to jobs.
    ///
    /// # Errors
    /// If that is nothing.
    pub fn available(&self) -> Result<Available, String> {
        let there = words(&self.base.join("cgroup.controllers")).unwrap_or_default();
        let has = |name: &str| there.iter().any(|found| found == name);
        let available = Available { memory: has("memory"), pids: has("pids") };
        match available {
            Available { memory: false, pids: false } => Err(missing("memory and pids", &self.base)),
            some => Ok(some),
        }
    }

    /// Moves the agent into the leaf, if it is not there, and hands the controllers on.
    ///
    /// # Errors
    /// If the kernel refuses; then no job gets limits, and whatever was moved is as well in the leaf.
    pub fn take(&self, available: Available) -> Result<(), String> {
        let handed_on = words(&self.base.join("cgroup.subtree_control")).unwrap_or_default();
        let wanted: Vec<_> = available.names().filter(|name| !handed_on.iter().any(|had| had == name)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let order: Vec<_> = wanted.iter().map(|name| format!("+{name}")).collect();
        let mut strays = self.strays.clone();
        for _ in 0..TRIES {
            let done = self.empty(&strays).and_then(|()| {
                fs::write(self.base.join("cgroup.subtree_control"), order.join(" ")).map_err(|error| error.to_string())
            });
            // What was born meanwhile was born of what was moved.
            let born = processes(&self.base).unwrap_or_default();
            match done {
                Err(_) if born.iter().any(|pid| !strays.contains(pid)) => strays = born,
                done => return done.map_err(|why| format!("{}: {why}", self.base.display())),
            }
        }
        Err(format!("processes do not cease to be born in {}", self.base.display()))
    }

    fn empty(&self, strays: &[i32]) -> Result<(), String> {
        let leaf = self.base.join(LEAF);
        if strays.is_empty() {
            return Ok(());
        }
        match fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.to_string()),
            _ => {}
        }
        for pid in strays {
            match fs::write(leaf.join("cgroup.procs"), pid.to_string()) {
                // It has ended since.
                Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => {}
                moved => moved.map_err(|error| format!("process {pid} cannot be moved to {LEAF}: {error}"))?,
            }
        }
        Ok(())
    }
}

impl Available {
    fn names(self) -> impl Iterator<Item = &'static str> {
        [("memory", self.memory), ("pids", self.pids)].into_iter().filter_map(|(name, there)| there.then_some(name))
    }

    /// What of it is missing.
    pub fn why_not(self, base: &Path) -> Option<String> {
        match self {
            Self { memory: true, pids: true } => None,
            Self { memory: false, .. } => Some(missing("memory", base)),
            Self { pids: false, .. } => Some(missing("pids", base)),
        }
    }
}

fn missing(names: &str, base: &Path) -> String {
    format!("{} has no controller of {names} to give (cgroup.controllers)", base.display())
}

fn may_write(path: &PathBuf) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

fn words(file: &Path) -> io::Result<Vec<String>> {
    Ok(fs::read_to_string(file)?.split_ascii_whitespace().map(str::to_owned).collect())
}

fn processes(group: &Path) -> io::Result<Vec<i32>> {
    Ok(words(&group.join("cgroup.procs"))?.iter().filter_map(|word| word.parse().ok()).collect())
}

/// A group below that neither the agent nor its service manager makes: limits would reach it.
fn foreign_group(base: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known = name == LEAF || name == OF_SYSTEMD || name.starts_with(OF_JOBS);
        if entry.file_type()?.is_dir() && !is_known {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
