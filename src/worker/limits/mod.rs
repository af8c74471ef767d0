//! What a job may take of this host: memory and processes, by a control group (cgroup v2) of each attempt's own, where the
//! agent may set limits there. Decided once, when the agent begins; carried out by the supervisor.

pub mod groups;
pub mod memory;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use app::domain::sandbox::JobLimits;

use self::groups::{Available, Owned};
use self::memory::JobMemory;
use crate::cli::limits::JobProcesses;
use crate::files::{Place, Running, attempts};
use crate::process::{ProcId, descendants};
use crate::supervisor::cgroup;

/// What the owner wants of each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Of memory.
    pub memory: JobMemory,
    /// Of processes and threads.
    pub processes: JobProcesses,
}

/// What this host's jobs are held to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    place: Option<Place>,
    why_not: Option<String>,
}

impl Host {
    /// Makes the agent's group ready for jobs that have limits: the agent and what it has started go into a leaf of it, as
    /// controllers reach no group whose parent has processes. Leaves all as it is where the group is not the agent's alone.
    pub fn set_up(work_dir: &Path, wanted: Wanted, jobs: u32) -> Self {
        let own = own_processes(work_dir);
        let ready = look(&own).and_then(|(group, available)| group.take(available).map(|()| (group.base, available)));
        let host = Self::of(ready, wanted, jobs);
        let of = |limit: fn(&Place) -> Option<u64>| host.place.as_ref().and_then(limit);
        let (memory, processes) = (of(|place| place.memory), of(|place| place.processes));
        tracing::info!(memory, processes, "limits of a job");
        if let Some(why) = &host.why_not {
            tracing::warn!(%why, "the memory or the processes of jobs cannot be limited here");
        }
        host
    }

    /// The same, but only looked at.
    pub fn look(work_dir: &Path, wanted: Wanted, jobs: u32) -> Self {
        Self::of(look(&own_processes(work_dir)).map(|(group, available)| (group.base, available)), wanted, jobs)
    }

    fn of(found: Result<(PathBuf, Available), String>, wanted: Wanted, jobs: u32) -> Self {
        let (base, available) = match found {
            Ok(found) => found,
            Err(why) => return Self { place: None, why_not: Some(why) },
        };
        let memory = available.memory.then(|| wanted.memory.of_each(memory::there_is(&base), jobs)).flatten();
        let processes = wanted.processes.0.filter(|_| available.pids);
        Self { why_not: available.why_not(&base), place: Some(Place { base, memory, processes }) }
    }

    /// Where the next attempt's group is made.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// What the orchestrator is told.
    pub fn reported(&self) -> JobLimits {
        let of = |limit: fn(&Place) -> Option<u64>| self.place.as_ref().and_then(limit);
        JobLimits {
            memory_bytes: of(|place| place.memory),
            processes: of(|place| place.processes),
            why_not: self.why_not.clone(),
        }
    }
}

fn look(own: &BTreeSet<i32>) -> Result<(Owned, Available), String> {
    let group = cgroup::own(None).ok_or("there is no cgroup v2 here")?;
    let is_top = fs::read_to_string("/proc/self/cgroup").is_ok_and(|text| text.lines().any(|line| line == "0::/"));
    let found = Owned::find(&group, is_top, |pid| own.contains(&pid))?;
    let available = found.available()?;
    Ok((found, available))
}

/// This process, what it has started, what an earlier agent of the same work directory has left running, and the init
/// process of a container whose agent this is.
fn own_processes(work_dir: &Path) -> BTreeSet<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let supervisors = attempts(work_dir).unwrap_or_default().into_iter().filter_map(|dir| {
        let running: Running = dir.read("supervisor.json").ok()??;
        Some(running.supervisor).filter(|supervisor: &ProcId| supervisor.is_alive()).map(|found| found.pid)
    });
    let heads: BTreeSet<i32> = supervisors.chain([own]).collect();
    let below = heads.iter().flat_map(|head| descendants(*head)).map(|process| process.pid);
    heads.iter().copied().chain(below).chain(is_init_of_this().then_some(1)).collect()
}

/// Whether process 1 is this program, which has started this process.
fn is_init_of_this() -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    nix::unistd::getppid().as_raw() == 1 && program("1").is_some() && program("1") == program("self")
}

#[cfg(test)]
#[path = "../tests/limits/mod.rs"]
mod tests;
