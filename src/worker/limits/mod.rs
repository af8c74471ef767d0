//! Limits of a job: memory and processes, by a control group (cgroup v2) per attempt, if the agent may set limits
//! there. Decided once when the agent starts; applied by the supervisor.

pub mod cgroups;
pub mod memory;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use app::domain::sandbox::JobLimits;

use self::cgroups::{AvailableControllers, OwnedCgroup};
use crate::worker::args::limits::RequestedLimits;
use crate::worker::cgroup;
use crate::worker::files::{JobCgroup, SupervisorRecord, list_attempts};
use crate::worker::process::{ProcId, descendants};

/// The limits that this host can apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLimits {
    job_cgroup: Option<JobCgroup>,
    unavailable_reason: Option<String>,
}

impl HostLimits {
    /// Prepares the agent's group for jobs with limits: moves the agent and its processes into a leaf, because a group
    /// gets no controllers while its parent has processes. Changes nothing if the group is not only the agent's.
    pub fn set_up(work_dir: &Path, requested: RequestedLimits, jobs: u32) -> Self {
        let pids = agent_processes(work_dir);
        let result = find_controllers(&pids)
            .and_then(|(group, available)| group.delegate_controllers(available).map(|()| (group.base, available)))
            .inspect(|(base, _)| cgroup::remove_unused(base));
        let host = Self::from_inspection(result, requested, jobs);
        let job_limit = |limit: fn(&JobCgroup) -> Option<u64>| host.job_cgroup.as_ref().and_then(limit);
        let (memory, processes) = (job_limit(|cgroup| cgroup.memory), job_limit(|cgroup| cgroup.processes));
        tracing::info!(memory, processes, "job limits");
        if let Some(reason) = &host.unavailable_reason {
            tracing::warn!(%reason, "memory or process limits of jobs are not available");
        }
        host
    }

    /// A host without limits.
    #[cfg(feature = "simulation")]
    pub fn none() -> Self {
        Self { job_cgroup: None, unavailable_reason: None }
    }

    /// The same without changes.
    pub fn inspect(work_dir: &Path, requested: RequestedLimits, jobs: u32) -> Self {
        Self::from_inspection(
            find_controllers(&agent_processes(work_dir)).map(|(group, available)| (group.base, available)),
            requested,
            jobs,
        )
    }

    fn from_inspection(
        found: Result<(PathBuf, AvailableControllers), String>,
        requested: RequestedLimits,
        jobs: u32,
    ) -> Self {
        let (base, available) = match found {
            Ok(found) => found,
            Err(reason) => return Self { job_cgroup: None, unavailable_reason: Some(reason) },
        };
        let memory =
            available.memory.then(|| requested.memory.per_job_bytes(memory::total_memory(&base), jobs)).flatten();
        let processes = requested.processes.0.filter(|_| available.pids);
        Self {
            unavailable_reason: available.missing_reason(&base),
            job_cgroup: Some(JobCgroup { base, memory, processes }),
        }
    }

    /// Where the next attempt's group is created.
    pub fn job_cgroup(&self) -> Option<&JobCgroup> {
        self.job_cgroup.as_ref()
    }

    pub fn to_report(&self) -> JobLimits {
        let job_limit = |limit: fn(&JobCgroup) -> Option<u64>| self.job_cgroup.as_ref().and_then(limit);
        JobLimits {
            memory_bytes: job_limit(|cgroup| cgroup.memory),
            processes: job_limit(|cgroup| cgroup.processes),
            why_not: self.unavailable_reason.clone(),
        }
    }
}

fn find_controllers(agent_pids: &BTreeSet<i32>) -> Result<(OwnedCgroup, AvailableControllers), String> {
    let group = cgroup::own_cgroup(None).ok_or("cgroup v2 is not available")?;
    let is_top = fs::read_to_string("/proc/self/cgroup").is_ok_and(|text| text.lines().any(|line| line == "0::/"));
    let found = OwnedCgroup::find(&group, is_top, |pid| agent_pids.contains(&pid))?;
    let available = found.available()?;
    Ok((found, available))
}

/// This process, its descendants, what an earlier agent of the same work directory has left running, and the
/// container's init process that started this agent.
fn agent_processes(work_dir: &Path) -> BTreeSet<i32> {
    let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
    let supervisors = list_attempts(work_dir).unwrap_or_default().into_iter().filter_map(|dir| {
        let record: SupervisorRecord = dir.read_json("supervisor.json").ok()??;
        Some(record.supervisor).filter(|supervisor: &ProcId| supervisor.is_alive()).map(|found| found.pid)
    });
    let roots: BTreeSet<i32> = supervisors.chain([own_pid]).collect();
    let descendant_pids = roots.iter().flat_map(|root| descendants(*root)).map(|process| process.pid);
    roots.iter().copied().chain(descendant_pids).chain(is_container_init().then_some(1)).collect()
}

/// Whether process 1 is this program and has started this process.
fn is_container_init() -> bool {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    nix::unistd::getppid().as_raw() == 1 && program("1").is_some() && program("1") == program("self")
}

#[cfg(test)]
#[path = "../tests/limits/mod.rs"]
mod tests;
