//! Evaluates what was found on this host.

use std::path::PathBuf;

use app::domain::sandbox::{JobLimits, SandboxLevel};

use super::diagnostic::Diagnostic;
use crate::worker::filesystem::format_gib;
use crate::worker::gpu::Hardware;
use crate::worker::sandbox::host::SandboxSupport as Sandbox;
use crate::worker::trainer_program::MissingTrainer;

const GIB: u64 = 1 << 30;
/// Too little for a bundle and a log, in bytes.
const MIN_FREE_BYTES: u64 = GIB;
/// Space for a few checkpoints.
const LOW_FREE_BYTES: u64 = 20 * GIB;
const LOW_MEMORY_BYTES: u64 = 4 * GIB;
/// The default of a container is 64 MiB; data loaders pass batches through it.
const LOW_SHARED_MEMORY_BYTES: u64 = GIB;
const LOW_OPEN_FILES: u64 = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// The configured path.
    pub dir: PathBuf,
    /// Its deepest existing directory.
    pub existing_dir: PathBuf,
    pub writable: Result<(), String>,
    /// For this user, in bytes.
    pub free_bytes: Option<u64>,
    /// What the agent keeps free, in bytes.
    pub min_free_bytes: u64,
    /// `None` if the file system does not count them.
    pub free_inodes: Option<u64>,
    /// `None` if it was not tried.
    pub can_punch_holes: Option<bool>,
    /// Whether an agent uses it.
    pub is_locked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainerFacts {
    /// Program first.
    pub command: Vec<String>,
    /// What is missing.
    pub missing: Option<MissingTrainer>,
    /// Whether several processes can be launched, if needed.
    pub accelerate: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupFacts {
    /// No cgroup v2.
    Absent,
    /// Groups can be created below it.
    Delegated(PathBuf),
    /// Owned by another user.
    NotDelegated(PathBuf),
}

/// Limits that trainers inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InheritedLimits {
    /// Max open files of a process.
    pub open_files: Option<u64>,
    /// The size of `/dev/shm`, in bytes.
    pub shared_memory: Option<u64>,
}

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFacts {
    pub total: Option<u64>,
    pub available: Option<u64>,
    /// Limit of this process and its children.
    pub limit: Option<u64>,
}

/// Checks the work directory, its space and lock.
pub fn check_disk(disk: &DiskFacts) -> Vec<Diagnostic> {
    let dir = disk.dir.display();
    let mut lines = vec![match &disk.writable {
        Ok(()) if disk.existing_dir == disk.dir => Diagnostic::ok("work directory", format!("{dir} is writable")),
        Ok(()) => Diagnostic::ok("work directory", format!("{dir} does not exist yet and can be created")),
        Err(error) => Diagnostic::fail(
            "work directory",
            format!("cannot write to {}: {error}", disk.existing_dir.display()),
            "free disk space, change its owner, or set another directory with --work-dir",
        ),
    }];
    let advice = "free disk space, or set another directory with --work-dir";
    lines.extend(disk.free_bytes.map(|free| {
        let found = format!("{} free", format_gib(free));
        match free {
            ..MIN_FREE_BYTES => Diagnostic::fail("disk", found, advice),
            _ if free < disk.min_free_bytes => Diagnostic::fail(
                "disk",
                format!("{found}, but --keep-free is {}", format_gib(disk.min_free_bytes)),
                "the agent prunes files of finished jobs, and then declines new jobs: free disk space, or lower \
                --keep-free",
            ),
            MIN_FREE_BYTES..LOW_FREE_BYTES => {
                Diagnostic::warn("disk", found, "large checkpoints do not fit: free disk space")
            }
            _ => Diagnostic::ok("disk", found),
        }
    }));
    if disk.free_inodes == Some(0) {
        lines.push(Diagnostic::fail("disk", "no more files can be created there (no free inodes)", advice));
    }
    if disk.can_punch_holes == Some(false) {
        lines.push(Diagnostic::warn(
            "disk",
            "its file system cannot punch holes into files",
            "logs use their full length on disk until their job is pruned",
        ));
    }
    if disk.is_locked {
        lines.push(Diagnostic::warn(
            "lock",
            "an agent uses this work directory",
            "no problem if it is the one to diagnose; another one needs its own --work-dir",
        ));
    }
    lines
}

/// Checks the GPUs and their driver.
pub fn check_gpus(hardware: &Hardware, kernel_module: Option<&str>) -> Diagnostic {
    let names: Vec<String> = hardware
        .gpus
        .iter()
        .map(|gpu| {
            let memory = gpu.vram_gb.map(|gb| format!(" ({gb} GB)")).unwrap_or_default();
            format!("{}{memory}", gpu.name)
        })
        .collect();
    let driver = hardware.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
    match (names.is_empty(), kernel_module) {
        (false, _) => Diagnostic::ok("gpu", format!("{}, {}{driver}", hardware.accelerator, names.join(", "))),
        (true, Some(version)) => Diagnostic::fail(
            "gpu",
            format!("the kernel has NVIDIA's driver {version}, but its library cannot be used here"),
            "run nvidia-smi to see the cause. After an upgrade of the driver restart the host; start a container \
            with --gpus all",
        ),
        (true, None) => Diagnostic::warn(
            "gpu",
            "none found",
            "jobs that require GPUs run elsewhere: install the driver (nvidia-smi must work), or set --gpu-count",
        ),
    }
}

/// Checks the trainer, and the launcher of several processes.
pub fn check_trainer(trainer: &TrainerFacts) -> Vec<Diagnostic> {
    let command = trainer.command.join(" ");
    let mut lines = vec![match &trainer.missing {
        None => Diagnostic::ok("trainer", format!("{command:?} found")),
        Some(missing @ MissingTrainer::Program(_)) => Diagnostic::fail(
            "trainer",
            missing.to_string(),
            "install it, set PATH, or set the trainer with --trainer; until then the agent accepts no jobs",
        ),
        Some(missing @ MissingTrainer::Module(_)) => Diagnostic::fail(
            "trainer",
            missing.to_string(),
            "install SimpleTuner into the Python that the worker uses, or set the trainer with --trainer; until \
            then the agent accepts no jobs",
        ),
    }];
    lines.extend(trainer.accelerate.map(|is_installed| {
        if is_installed {
            Diagnostic::ok("accelerate", "installed, for jobs on several GPUs")
        } else {
            Diagnostic::warn(
                "accelerate",
                "not installed in the trainer's Python",
                "install accelerate; without it, jobs on several GPUs fail",
            )
        }
    }));
    lines
}

/// Checks whether the agent can create control groups.
pub fn check_cgroup(cgroup: &CgroupFacts) -> Diagnostic {
    let advice =
        "jobs are stopped by session and parent process instead; Delegate=yes in the service's unit is more reliable";
    match cgroup {
        CgroupFacts::Delegated(dir) => Diagnostic::ok("cgroup", format!("{} is delegated", dir.display())),
        CgroupFacts::NotDelegated(dir) => {
            Diagnostic::warn("cgroup", format!("{} is not delegated", dir.display()), advice)
        }
        CgroupFacts::Absent => Diagnostic::warn("cgroup", "cgroup v2 is not available", advice),
    }
}

/// Checks the limits of a job.
pub fn check_job_limits(limits: &JobLimits) -> Diagnostic {
    let or_unlimited = |limit: Option<String>| limit.unwrap_or_else(|| "unlimited".to_owned());
    let memory = or_unlimited(limits.memory_bytes.map(format_gib));
    let processes = limits.processes.map_or_else(|| "unlimited".to_owned(), |count| count.to_string());
    let found = format!("limits per job: memory {memory}, processes {processes}");
    match &limits.why_not {
        None => Diagnostic::ok("job limits", found),
        Some(reason) => Diagnostic::warn(
            "job limits",
            format!("{found}: {reason}"),
            "a job that uses too much can take the host down: docs/WORKER.md lists what limits require",
        ),
    }
}

/// Checks the sandbox level, and why it is not higher. Only a host with GPUs needs CUDA.
pub fn check_sandbox(host: &Sandbox, has_gpus: bool) -> Diagnostic {
    let (min_level, max_level) = (host.min_level.as_str(), host.max_level.as_str());
    let isolates_users = match host.min_level {
        SandboxLevel::Files => host.isolates_users_at_files,
        SandboxLevel::None | SandboxLevel::Full => host.isolates_users,
    };
    let users = if isolates_users { ", each user's as a separate operating system user" } else { "" };
    let found = format!("jobs run at sandbox level {min_level}{users}; this host supports {max_level}");
    if let Some(reason) = host.cuda_block_reason().filter(|_| has_gpus) {
        let advice = "let other users read the trainer's files, or set --sandbox-min full";
        return Diagnostic::fail("sandbox", format!("{found}: {reason}"), advice);
    }
    match (host.unhealthy_reason(), &host.limit_reason) {
        (Some(reason), _) => {
            Diagnostic::fail("sandbox", reason, "lower --sandbox-min, or enable more in the kernel: see docs/WORKER.md")
        }
        (None, Some(reason)) => Diagnostic::warn(
            "sandbox",
            format!("{found}, not higher: {reason}"),
            "run jobs of trusted users only, or enable more in the kernel: see docs/WORKER.md",
        ),
        (None, None) if host.min_level == SandboxLevel::None => {
            Diagnostic::warn("sandbox", found, "jobs can do what this user can: run jobs of trusted users only")
        }
        (None, None) => Diagnostic::ok("sandbox", found),
    }
}

/// Checks the limits that trainers inherit.
pub fn check_limits(limits: InheritedLimits) -> Vec<Diagnostic> {
    let files = limits.open_files.map(|files| match files {
        ..LOW_OPEN_FILES => Diagnostic::warn(
            "open files",
            format!("{files} per process"),
            "data loaders need more: ulimit -n 65536, or LimitNOFILE= in the service's unit",
        ),
        _ => Diagnostic::ok("open files", format!("{files} per process")),
    });
    let shared = limits.shared_memory.map(|bytes| match bytes {
        ..LOW_SHARED_MEMORY_BYTES => Diagnostic::warn(
            "shared memory",
            format!("/dev/shm has {}", format_gib(bytes)),
            "data loaders with workers need more: start the container with --shm-size=8g or --ipc=host",
        ),
        _ => Diagnostic::ok("shared memory", format!("/dev/shm has {}", format_gib(bytes))),
    });
    files.into_iter().chain(shared).collect()
}

/// Checks the memory and its limit.
pub fn check_memory(memory: MemoryFacts) -> Option<Diagnostic> {
    let total = memory.total?;
    let limit = memory.limit.filter(|limit| *limit < total);
    let usable = limit.unwrap_or(total).min(memory.available.unwrap_or(total));
    let limited = limit.map(|limit| format!(", limited to {}", format_gib(limit))).unwrap_or_default();
    let available = memory.available.map(|free| format!(", {} available", format_gib(free))).unwrap_or_default();
    let found = format!("{}{limited}{available}", format_gib(total));
    Some(if usable < LOW_MEMORY_BYTES {
        Diagnostic::warn(
            "memory",
            found,
            "trainers of large models are killed when it is full: free some, or raise the limit",
        )
    } else {
        Diagnostic::ok("memory", found)
    })
}

#[cfg(test)]
#[path = "tests/host.rs"]
mod tests;
