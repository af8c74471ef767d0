//! Finds the agent's control group, decides whether jobs can have limits, and delegates the controllers.
//!
//! The kernel delegates controllers only from a group without processes, and then allows no process in it. So the agent
//! and its supervisors are in a leaf beside the groups of jobs:
//!
//! | group | processes |
//! |---|---|
//! | `BASE` | none |
//! | `BASE/agent` | the agent and its supervisors |
//! | `BASE/st-JOB-ATTEMPT-…` | one trainer and all that it starts |
//!
//! The next agent must start in the leaf too: systemd ensures that with `DelegateSubgroup=agent`. If a service manager
//! started it in the base, the start would fail. So the agent creates the leaf itself only in the top group of a
//! container, where its own init process starts it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::worker::cgroup::JOB_CGROUP_PREFIX;

/// The leaf. The unit in deploy/ uses the same name.
pub const AGENT_CGROUP: &str = "agent";
/// Where systemd starts a unit's other processes.
const SYSTEMD_CGROUP: &str = ".control";
/// Processes may be started while others are moved.
const MAX_TRIES: u32 = 10;

/// A group that only the agent uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedCgroup {
    /// See the module.
    pub base: PathBuf,
    /// Processes of the agent that must be moved to the leaf.
    misplaced_pids: Vec<i32>,
}

/// The controllers available for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableControllers {
    pub memory: bool,
    pub pids: bool,
}

impl OwnedCgroup {
    /// Checks the group of the agent; `is_top` if it is the topmost visible one.
    ///
    /// # Errors
    /// Why jobs below it can have no limits.
    pub fn find(agent_group: &Path, is_top: bool, is_agent_process: impl Fn(i32) -> bool) -> Result<Self, String> {
        let base = match agent_group.parent().filter(|_| agent_group.ends_with(AGENT_CGROUP)) {
            Some(parent) => parent,
            None if is_top => agent_group,
            None => {
                return Err(format!(
                    "the agent was not started in a group \"{AGENT_CGROUP}\" below its own group (now {}): use the \
                    unit in deploy/ with systemd 254 or later, which has DelegateSubgroup={AGENT_CGROUP}",
                    agent_group.display()
                ));
            }
        };
        let base_path = base.display();
        if !base.join("cgroup.type").exists() {
            return Err(format!("{base_path} is the host's root control group"));
        }
        if ![base.to_owned(), base.join("cgroup.procs"), base.join("cgroup.subtree_control")].iter().all(can_write) {
            return Err(format!("{base_path} is not delegated to the agent (Delegate=yes in the service's unit)"));
        }
        let read_error = |error: io::Error| format!("cannot read {base_path}: {error}");
        if let Some(name) = find_foreign_cgroup(base).map_err(read_error)? {
            return Err(format!("{base_path} has a group \"{name}\" that is not the agent's"));
        }
        let misplaced_pids = read_pids(base).map_err(read_error)?;
        match misplaced_pids.iter().find(|pid| !is_agent_process(**pid)) {
            Some(pid) => Err(format!("process {pid}, which is not the agent's, is also in {base_path}")),
            None => Ok(Self { base: base.to_owned(), misplaced_pids }),
        }
    }

    /// The controllers that can be delegated to jobs.
    ///
    /// # Errors
    /// If there are none.
    pub fn available(&self) -> Result<AvailableControllers, String> {
        let names = read_words(&self.base.join("cgroup.controllers")).unwrap_or_default();
        let has = |name: &str| names.iter().any(|found| found == name);
        let available = AvailableControllers { memory: has("memory"), pids: has("pids") };
        match available {
            AvailableControllers { memory: false, pids: false } => Err(describe_missing("memory and pids", &self.base)),
            available => Ok(available),
        }
    }

    /// Moves the agent into the leaf, if necessary, and delegates the controllers.
    ///
    /// # Errors
    /// If the kernel rejects it. Then no job gets limits, and processes that were moved stay in the leaf.
    pub fn delegate_controllers(&self, available: AvailableControllers) -> Result<(), String> {
        let delegated = read_words(&self.base.join("cgroup.subtree_control")).unwrap_or_default();
        let missing: Vec<_> =
            available.names().filter(|name| !delegated.iter().any(|delegated_name| delegated_name == name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let changes: Vec<_> = missing.iter().map(|name| format!("+{name}")).collect();
        let mut misplaced_pids = self.misplaced_pids.clone();
        for _ in 0..MAX_TRIES {
            let result = self.move_to_leaf(&misplaced_pids).and_then(|()| {
                fs::write(self.base.join("cgroup.subtree_control"), changes.join(" "))
                    .map_err(|error| error.to_string())
            });
            // Processes started meanwhile are children of those that were moved.
            let remaining_pids = read_pids(&self.base).unwrap_or_default();
            match result {
                Err(_) if remaining_pids.iter().any(|pid| !misplaced_pids.contains(pid)) => {
                    misplaced_pids = remaining_pids;
                }
                result => return result.map_err(|error| format!("{}: {error}", self.base.display())),
            }
        }
        Err(format!("new processes keep appearing in {}", self.base.display()))
    }

    fn move_to_leaf(&self, pids: &[i32]) -> Result<(), String> {
        let leaf = self.base.join(AGENT_CGROUP);
        if pids.is_empty() {
            return Ok(());
        }
        match fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.to_string()),
            _ => {}
        }
        for pid in pids {
            match fs::write(leaf.join("cgroup.procs"), pid.to_string()) {
                // It has exited since.
                Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => {}
                result => result.map_err(|error| format!("cannot move process {pid} to {AGENT_CGROUP}: {error}"))?,
            }
        }
        Ok(())
    }
}

impl AvailableControllers {
    fn names(self) -> impl Iterator<Item = &'static str> {
        [("memory", self.memory), ("pids", self.pids)]
            .into_iter()
            .filter_map(|(name, is_available)| is_available.then_some(name))
    }

    pub fn missing_reason(self, base: &Path) -> Option<String> {
        match self {
            Self { memory: true, pids: true } => None,
            Self { memory: false, .. } => Some(describe_missing("memory", base)),
            Self { pids: false, .. } => Some(describe_missing("pids", base)),
        }
    }
}

fn describe_missing(names: &str, base: &Path) -> String {
    format!("{} has no controller of {names} to delegate (cgroup.controllers)", base.display())
}

fn can_write(path: &PathBuf) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

fn read_words(file: &Path) -> io::Result<Vec<String>> {
    Ok(fs::read_to_string(file)?.split_ascii_whitespace().map(str::to_owned).collect())
}

fn read_pids(group: &Path) -> io::Result<Vec<i32>> {
    Ok(read_words(&group.join("cgroup.procs"))?.iter().filter_map(|pid| pid.parse().ok()).collect())
}

/// A group below the base that neither the agent nor its service manager creates: limits would affect it.
fn find_foreign_cgroup(base: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(base)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known = name == AGENT_CGROUP || name == SYSTEMD_CGROUP || name.starts_with(JOB_CGROUP_PREFIX);
        if entry.file_type()?.is_dir() && !is_known {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
