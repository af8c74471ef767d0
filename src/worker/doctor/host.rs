//! What there is on this host, and what it means for jobs.

use std::path::PathBuf;

use app::domain::sandbox::{JobLimits, SandboxLevel};

use super::line::Line;
use crate::config::disk::gib;
use crate::gpu::Hardware;
use crate::sandbox::host::Host as Sandbox;

const GIB: u64 = 1 << 30;
/// Less free space than this is not enough for a bundle and a log, in bytes.
const LEAST_FREE: u64 = GIB;
/// A few checkpoints.
const SMALL_DISK: u64 = 20 * GIB;
const SMALL_MEMORY: u64 = 4 * GIB;
/// What a container gets that was not asked for more is 64 MiB; data loaders pass batches through it.
const SMALL_SHARED_MEMORY: u64 = GIB;
const FEW_FILES: u64 = 1024;

/// The work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Where it is to be.
    pub dir: PathBuf,
    /// What is there of it.
    pub there: PathBuf,
    /// Whether something can be written there.
    pub writable: Result<(), String>,
    /// For this user, in bytes.
    pub free_bytes: Option<u64>,
    /// What the agent keeps free, in bytes.
    pub kept_free: u64,
    /// How many more files there can be; none where nobody counts.
    pub files_left: Option<u64>,
    /// Whether holes can be punched; none where it was not tried.
    pub holes: Option<bool>,
    /// Whether an agent uses it.
    pub in_use: bool,
}

/// The trainer's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trainer {
    /// Program first.
    pub command: Vec<String>,
    /// Whether there is such a program.
    pub program: bool,
    /// Whether it can be started: of `python -m MODULE` also the module is there.
    pub starts: bool,
    /// Whether several processes can be launched, if they have to be.
    pub accelerate: Option<bool>,
}

/// The control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cgroup {
    /// No version 2.
    Absent,
    /// Groups can be made below it.
    Delegated(PathBuf),
    /// Somebody else's.
    NotOurs(PathBuf),
}

/// What trainers inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files that a process may have open.
    pub open_files: Option<u64>,
    /// The size of `/dev/shm`, in bytes.
    pub shared_memory: Option<u64>,
}

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The host's.
    pub total: Option<u64>,
    /// What is not in use.
    pub available: Option<u64>,
    /// What this process and its children may use.
    pub limit: Option<u64>,
}

/// Work directory, space and lock.
pub fn disk(disk: &Disk) -> Vec<Line> {
    let dir = disk.dir.display();
    let mut lines = vec![match &disk.writable {
        Ok(()) if disk.there == disk.dir => Line::ok("work directory", format!("{dir} can be written")),
        Ok(()) => Line::ok("work directory", format!("{dir} is not there yet and can be made")),
        Err(error) => Line::fail(
            "work directory",
            format!("nothing can be written to {}: {error}", disk.there.display()),
            "make room, change its owner, or name another one with --work-dir",
        ),
    }];
    let advice = "make room, or name another place with --work-dir";
    lines.extend(disk.free_bytes.map(|free| {
        let found = format!("{} free", gib(free));
        match free {
            ..LEAST_FREE => Line::fail("disk", found, advice),
            _ if free < disk.kept_free => Line::fail(
                "disk",
                format!("{found}, and {} are to stay free (--keep-free)", gib(disk.kept_free)),
                "the agent removes files of finished jobs, and if that is not enough takes no job: make room, or lower --keep-free",
            ),
            LEAST_FREE..SMALL_DISK => Line::warn("disk", found, "checkpoints of large models do not fit: make room"),
            _ => Line::ok("disk", found),
        }
    }));
    if disk.files_left == Some(0) {
        lines.push(Line::fail("disk", "no more files can be made there (no inodes left)", advice));
    }
    if disk.holes == Some(false) {
        lines.push(Line::warn(
            "disk",
            "its file system cannot give back parts of a file",
            "logs keep their whole length on disk until their job is tidied away",
        ));
    }
    if disk.in_use {
        lines.push(Line::warn(
            "lock",
            "an agent uses this work directory",
            "that is well if it is the one you ask about; another one needs its own --work-dir",
        ));
    }
    lines
}

/// GPUs and their driver.
pub fn gpus(hardware: &Hardware, kernel_module: Option<&str>) -> Line {
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
        (false, _) => Line::ok("gpu", format!("{}, {}{driver}", hardware.accelerator, names.join(", "))),
        (true, Some(version)) => Line::fail(
            "gpu",
            format!("the kernel has NVIDIA's driver {version}, but its library cannot be used here"),
            "run nvidia-smi: it says why. After an upgrade of the driver restart the host; start a container with --gpus all",
        ),
        (true, None) => Line::warn(
            "gpu",
            "none was found",
            "jobs that ask for GPUs go elsewhere: install the driver (nvidia-smi must work), or say what there is with --gpu-count",
        ),
    }
}

/// The trainer, and what starts several of its processes.
pub fn trainer(trainer: &Trainer) -> Vec<Line> {
    let command = trainer.command.join(" ");
    let module = trainer.command.get(2).map(String::as_str).unwrap_or_default();
    let mut lines = vec![match (trainer.program, trainer.starts) {
        (true, true) => Line::ok("trainer", format!("{command:?} is there")),
        (false, _) => Line::fail(
            "trainer",
            format!("there is no program {:?}", trainer.command.first().map(String::as_str).unwrap_or_default()),
            "install it, set PATH, or name the trainer with --trainer",
        ),
        (true, false) => Line::fail(
            "trainer",
            format!("Python finds no module {module:?}"),
            "install SimpleTuner into the Python that the worker uses, or name the trainer with --trainer",
        ),
    }];
    lines.extend(trainer.accelerate.map(|there| {
        if there {
            Line::ok("accelerate", "is there, for jobs on several GPUs")
        } else {
            Line::warn(
                "accelerate",
                "the trainer's Python has none",
                "install accelerate, or jobs on several GPUs fail",
            )
        }
    }));
    lines
}

/// Whether a job's processes can be held together by the kernel.
pub fn cgroup(cgroup: &Cgroup) -> Line {
    let advice = "jobs are ended by session and parentage instead; Delegate=yes in the service's unit is surer";
    match cgroup {
        Cgroup::Delegated(dir) => Line::ok("cgroup", format!("{} is delegated", dir.display())),
        Cgroup::NotOurs(dir) => Line::warn("cgroup", format!("{} is not delegated", dir.display()), advice),
        Cgroup::Absent => Line::warn("cgroup", "version 2 is not there", advice),
    }
}

/// What each job may take of the host.
pub fn job_limits(limits: &JobLimits) -> Line {
    let of = |limit: Option<String>| limit.unwrap_or_else(|| "as much as there is".to_owned());
    let memory = of(limits.memory_bytes.map(gib));
    let processes = limits.processes.map_or_else(|| "any number of".to_owned(), |count| count.to_string());
    let found = format!("a job has {memory} of memory and {processes} processes");
    match &limits.why_not {
        None => Line::ok("job limits", found),
        Some(why) => Line::warn(
            "job limits",
            format!("{found}: {why}"),
            "a job that takes too much can take the host down: docs/WORKER.md says what limits need",
        ),
    }
}

/// How closely jobs are confined, and why not more.
pub fn sandbox(host: &Sandbox) -> Line {
    let (least, most) = (host.least.as_str(), host.most.as_str());
    let users = if host.has_users { ", each person's as a user of their own" } else { "" };
    let found = format!("jobs are confined at level {least}{users}; this host can do {most}");
    match (host.unfit(), &host.why_not_more) {
        (Some(why), _) => {
            Line::fail("sandbox", why, "lower --sandbox-min, or let the kernel do more: docs/WORKER.md says how")
        }
        (None, Some(why)) => Line::warn(
            "sandbox",
            format!("{found}, not more: {why}"),
            "run jobs of people you trust only, or let the kernel do more: docs/WORKER.md says how",
        ),
        (None, None) if host.least == SandboxLevel::None => {
            Line::warn("sandbox", found, "jobs can do what this user can: run those of people you trust only")
        }
        (None, None) => Line::ok("sandbox", found),
    }
}

/// What trainers inherit.
pub fn limits(limits: Limits) -> Vec<Line> {
    let files = limits.open_files.map(|files| match files {
        ..FEW_FILES => Line::warn(
            "open files",
            format!("{files} for a process"),
            "data loaders need more: ulimit -n 65536, or LimitNOFILE= in the service's unit",
        ),
        _ => Line::ok("open files", format!("{files} for a process")),
    });
    let shared = limits.shared_memory.map(|bytes| match bytes {
        ..SMALL_SHARED_MEMORY => Line::warn(
            "shared memory",
            format!("/dev/shm has {}", gib(bytes)),
            "data loaders with workers need more: start the container with --shm-size=8g or --ipc=host",
        ),
        _ => Line::ok("shared memory", format!("/dev/shm has {}", gib(bytes))),
    });
    files.into_iter().chain(shared).collect()
}

/// Memory, and what is allowed of it.
pub fn memory(memory: Memory) -> Option<Line> {
    let total = memory.total?;
    let limit = memory.limit.filter(|limit| *limit < total);
    let may = limit.unwrap_or(total).min(memory.available.unwrap_or(total));
    let limited = limit.map(|limit| format!(", limited to {}", gib(limit))).unwrap_or_default();
    let available = memory.available.map(|free| format!(", {} available", gib(free))).unwrap_or_default();
    let found = format!("{}{limited}{available}", gib(total));
    Some(if may < SMALL_MEMORY {
        Line::warn(
            "memory",
            found,
            "trainers of large models are killed when it is used up: free some, or raise the limit",
        )
    } else {
        Line::ok("memory", found)
    })
}

#[cfg(test)]
#[path = "tests/host.rs"]
mod tests;
