//! What there is on this host: looked at, and left as it was.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::host::{Cgroup, Disk, Limits, Memory, Trainer};
use crate::config::Config;
use crate::config::disk::KeepFree;
use crate::probe::can_start;
use crate::room::space;
use crate::sandbox::host::Host as Sandbox;
use crate::supervisor::cgroup;

/// The size of the file by which a disk is tried, in bytes.
const TRIAL: usize = 64 * 1024;

/// The work directory, or what is there of it.
pub fn disk(work_dir: &Path, keep: KeepFree) -> Disk {
    let there = work_dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let (room, space) = (space(there), statvfs(there).ok());
    let writable = attempt_to_write(there);
    Disk {
        dir: work_dir.to_owned(),
        there: there.to_owned(),
        free_bytes: room.map(|room| room.free),
        kept_free: room.map(|room| keep.bytes(room.total)).unwrap_or_default(),
        // Some file systems count no files.
        files_left: space.filter(|space| space.files() > 0).map(|space| space.files_available()),
        holes: writable.as_ref().ok().copied(),
        writable: writable.map(drop),
        in_use: is_locked(&work_dir.join("agent.lock")),
    }
}

/// Writes a file and punches a hole into it. Whether the hole came about; an error if not even the file did.
fn attempt_to_write(dir: &Path) -> Result<bool, String> {
    let path = dir.join(format!(".doctor-{}", std::process::id()));
    let trial = || -> io::Result<bool> {
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        fs::write(&path, vec![1; TRIAL])?;
        let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        Ok(fallocate(&file, punch, 0, i64::try_from(TRIAL).unwrap_or(i64::MAX)).is_ok())
    };
    let tried = trial();
    // It is not there if it could not be made.
    let _ = fs::remove_file(&path);
    tried.map_err(|error| error.to_string())
}

/// Whether an agent holds it. It is held for an instant, as there is no other way to know on every file system.
fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err())
}

/// What of the trainer is there. `gpus` says whether several processes have to be started.
pub fn trainer(command: Vec<String>, gpus: usize) -> Trainer {
    let program = command.first().cloned().unwrap_or_default();
    let python_module = matches!(&command[..], [_, flag, _, ..] if flag == "-m");
    let accelerate =
        (python_module && gpus > 1).then(|| can_start(&[program.clone(), "-m".to_owned(), "accelerate".to_owned()]));
    Trainer { program: can_start(&[program]), starts: can_start(&command), command, accelerate }
}

/// How trainers can be confined, tried where nothing of the agent's is.
pub fn sandbox(config: &Config) -> Sandbox {
    let scratch = std::env::temp_dir().join(format!("simpletuner-doctor-{}", std::process::id()));
    let host = Sandbox::examine(config, &scratch);
    // It was not made if nothing could be tried.
    let _ = fs::remove_dir_all(&scratch);
    host
}

/// The control group that this process is in.
pub fn cgroup() -> Cgroup {
    let Some(dir) = cgroup::own(None) else { return Cgroup::Absent };
    let ours = |file: PathBuf| access(&file, AccessFlags::W_OK).is_ok();
    if ours(dir.clone()) && ours(dir.join("cgroup.procs")) { Cgroup::Delegated(dir) } else { Cgroup::NotOurs(dir) }
}

/// What trainers inherit.
pub fn limits() -> Limits {
    let shm = statvfs("/dev/shm").ok().map(|space| space.blocks().saturating_mul(space.fragment_size()));
    Limits { open_files: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft), shared_memory: shm }
}

/// How much memory there is, in bytes.
pub fn memory(cgroup: &Cgroup) -> Memory {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    let limit = match cgroup {
        Cgroup::Delegated(dir) | Cgroup::NotOurs(dir) => fs::read_to_string(dir.join("memory.max")).ok(),
        Cgroup::Absent => None,
    };
    Memory {
        total: kib("MemTotal"),
        available: kib("MemAvailable"),
        limit: limit.and_then(|text| text.trim().parse().ok()),
    }
}

/// The kernel's half of NVIDIA's driver, by its version.
pub fn kernel_module() -> Option<String> {
    let text = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let version = text.split_ascii_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.to_owned())
}
