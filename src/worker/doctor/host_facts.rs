//! Collects facts about this host without changing it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::host_checks::{CgroupFacts, DiskFacts, InheritedLimits, MemoryFacts, TrainerFacts};
use crate::worker::cgroup;
use crate::worker::config::AgentConfig;
use crate::worker::config::disk::MinFreeSpace;
use crate::worker::filesystem::read_disk_space;
use crate::worker::sandbox::host::SandboxSupport as Sandbox;
use crate::worker::trainer_program::{can_start, find_missing};

/// Size of the file that tests a disk, in bytes.
const PROBE_FILE_BYTES: usize = 64 * 1024;

/// Inspects the work directory, or its deepest existing parent.
pub fn inspect_disk(work_dir: &Path, min_free: MinFreeSpace) -> DiskFacts {
    let existing_dir = work_dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let (disk, space) = (read_disk_space(existing_dir), statvfs(existing_dir).ok());
    let writable = probe_write(existing_dir);
    DiskFacts {
        dir: work_dir.to_owned(),
        existing_dir: existing_dir.to_owned(),
        free_bytes: disk.map(|disk| disk.free),
        min_free_bytes: disk.map(|disk| min_free.bytes(disk.total)).unwrap_or_default(),
        // Some file systems do not count files.
        free_inodes: space.filter(|space| space.files() > 0).map(|space| space.files_available()),
        can_punch_holes: writable.as_ref().ok().copied(),
        writable: writable.map(drop),
        is_locked: is_locked(&work_dir.join("agent.lock")),
    }
}

/// Writes a file and punches a hole into it. Returns whether the hole worked.
///
/// # Errors
/// If the file cannot be written.
fn probe_write(dir: &Path) -> Result<bool, String> {
    let path = dir.join(format!(".doctor-{}", std::process::id()));
    let write_probe = || -> io::Result<bool> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        fs::write(&path, vec![1; PROBE_FILE_BYTES])?;
        let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        Ok(fallocate(&file, punch, 0, i64::try_from(PROBE_FILE_BYTES).unwrap_or(i64::MAX)).is_ok())
    };
    let result = write_probe();
    // The file is missing if it could not be created.
    let _ = fs::remove_file(&path);
    result.map_err(|error| error.to_string())
}

/// Whether an agent holds the lock. It is taken for an instant, because no other way works on every file system.
fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err())
}

/// Inspects the trainer. `gpus` decides whether several processes are needed.
pub fn inspect_trainer(command: Vec<String>, gpus: usize) -> TrainerFacts {
    let program = command.first().cloned().unwrap_or_default();
    let python_module = matches!(&command[..], [_, flag, _, ..] if flag == "-m");
    let accelerate =
        (python_module && gpus > 1).then(|| can_start(&[program, "-m".to_owned(), "accelerate".to_owned()]));
    TrainerFacts { missing: find_missing(&command), command, accelerate }
}

/// Tests the sandbox in a temporary directory, not in one of the agent's.
pub fn inspect_sandbox(config: &AgentConfig) -> Sandbox {
    let scratch = std::env::temp_dir().join(format!("simpletuner-doctor-{}", std::process::id()));
    let host = Sandbox::detect(config, &scratch);
    // It is missing if nothing could be tested.
    let _ = fs::remove_dir_all(&scratch);
    host
}

/// The control group of this process.
pub fn inspect_cgroup() -> CgroupFacts {
    let Some(dir) = cgroup::own_cgroup(None) else { return CgroupFacts::Absent };
    let is_writable = |file: PathBuf| access(&file, AccessFlags::W_OK).is_ok();
    if is_writable(dir.clone()) && is_writable(dir.join("cgroup.procs")) {
        CgroupFacts::Delegated(dir)
    } else {
        CgroupFacts::NotDelegated(dir)
    }
}

pub fn inspect_limits() -> InheritedLimits {
    let shm = statvfs("/dev/shm").ok().map(|space| space.blocks().saturating_mul(space.fragment_size()));
    InheritedLimits { open_files: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft), shared_memory: shm }
}

/// Memory in bytes.
pub fn inspect_memory(cgroup: &CgroupFacts) -> MemoryFacts {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    let limit = match cgroup {
        CgroupFacts::Delegated(dir) | CgroupFacts::NotDelegated(dir) => fs::read_to_string(dir.join("memory.max")).ok(),
        CgroupFacts::Absent => None,
    };
    MemoryFacts {
        total: kib("MemTotal"),
        available: kib("MemAvailable"),
        limit: limit.and_then(|text| text.trim().parse().ok()),
    }
}

/// The version of NVIDIA's kernel module.
pub fn nvidia_module_version() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let version = text.split_ascii_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.to_owned())
}
