//! The step between supervisor and trainer: it confines itself, and then becomes the trainer or starts it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use app::domain::sandbox::SandboxLevel;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{getegid, geteuid};

use super::landlock::{self, LandlockRules};
use super::plan::{self, SandboxJob, SandboxPlan};
use super::proc_files::kernel_is_protected;
use super::report::{LaunchFailure, SandboxReport, send};
use super::{credentials, init, seccomp};
use crate::exit::{self, FatalError};
use crate::files::AttemptDir;
use crate::trainer_program::{build_command, explain_spawn_error};

/// Devices that every program expects, and that give access to nothing.
const DEVICE_FILES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Terminals, for a trainer with a user of its own. Others would open those that the agent's user has open elsewhere.
const TERMINAL_DEVICES: [&str; 2] = ["/dev/pts", "/dev/ptmx"];
/// Where shared memory is. At level `files` processes of one user can reach each other's there.
const SHARED_MEMORY: &str = "/dev/shm";
const PROC: &str = "/proc";

/// The hidden subcommand. `is_init` is the second half of level `full`, as the first process of its PID namespace.
///
/// # Errors
/// If not even the failure can be reported.
pub fn main(path: &Path, is_init: bool) -> Result<u8, FatalError> {
    // Whatever descriptor the agent was started with is not the trainer's.
    close_fds::set_fds_cloexec(3, &[]);
    // Nor is its umask: the directories that lead to what was given must be open to the trainer's user.
    umask(Mode::from_bits_truncate(0o022));
    let failed = match enter_sandbox(&AttemptDir::from_path(path), is_init) {
        Ok(code) => return Ok(code),
        Err(failed) => failed,
    };
    send(io::stdout(), &SandboxReport::Failed(failed)).map_err(|error| FatalError::error(error.to_string()))?;
    Ok(exit::ERROR)
}

fn enter_sandbox(dir: &AttemptDir, is_init: bool) -> Result<u8, LaunchFailure> {
    let job: Option<SandboxJob> = dir.read_json(plan::FILE).map_err(|error| setup_failure(&error.to_string()))?;
    let job = job.ok_or_else(|| setup_failure("sandbox.json is missing"))?;
    match (job.plan.level, is_init) {
        (SandboxLevel::Full, true) => init::run(dir, &job),
        (SandboxLevel::Full, false) => start_init(dir, &job.plan),
        (SandboxLevel::Files, _) => exec_trainer(&job),
        (SandboxLevel::None, _) => Err(setup_failure("its level is none")),
    }
}

/// Level `files`: this process becomes the trainer.
fn exec_trainer(job: &SandboxJob) -> Result<u8, LaunchFailure> {
    let plan = &job.plan;
    // Before the log takes the place of standard output: it closes by itself when the trainer begins.
    let pipe = io::stdout().as_fd().try_clone_to_owned().map_err(|error| setup_failure(&error.to_string()))?;
    credentials::apply_limits(plan).map_err(|why| setup_failure(&why))?;
    credentials::drop_privileges(plan).map_err(|why| setup_failure(&why))?;
    restrict(plan).map_err(|why| setup_failure(&why))?;
    let mut command =
        build_command(&job.command, &plan.work).map_err(|why| LaunchFailure { why, host_fault: false })?;
    let error = command.stdout(inherit_log()?).stderr(inherit_log()?).exec();
    let failed = LaunchFailure { why: explain_spawn_error(&job.command, &error), host_fault: false };
    send(File::from(pipe), &SandboxReport::Failed(failed)).map_err(|error| setup_failure(&error.to_string()))?;
    std::process::exit(i32::from(exit::ERROR))
}

/// The host's own files are within reach: only those of the plan can be opened.
fn restrict(plan: &SandboxPlan) -> Result<(), String> {
    let read: Vec<_> = plan.read.iter().cloned().chain([PathBuf::from(PROC)]).collect();
    let shared = [plan.tmp.clone(), PathBuf::from(SHARED_MEMORY)];
    let write: Vec<_> = plan.write.iter().cloned().chain(shared).collect();
    let terminals = TERMINAL_DEVICES.iter().filter(|_| plan.user.is_some());
    let usual = DEVICE_FILES.iter().chain(terminals).map(PathBuf::from);
    let devices: Vec<_> = usual.chain(plan.devices.iter().cloned()).collect();
    let proc = [PathBuf::from(PROC)];
    let update = if kernel_is_protected(Path::new(PROC)) { &proc[..] } else { &[] };
    let version = landlock::restrict(&LandlockRules { read: &read, write: &write, devices: &devices, update })?;
    seccomp::restrict(version < landlock::TRUNCATE_ABI)
}

/// Level `full`: makes the namespaces, starts the init process in them, and ends, which makes the supervisor its parent.
fn start_init(dir: &AttemptDir, plan: &SandboxPlan) -> Result<u8, LaunchFailure> {
    // The init process cannot do this by itself once its memory is private.
    credentials::apply_limits(plan).map_err(|why| setup_failure(&why))?;
    let (uid, gid) = (geteuid(), getegid());
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    let may = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false);
    let flags = if may { own } else { own | CloneFlags::CLONE_NEWUSER };
    unshare(flags).map_err(|error| setup_failure(&format!("namespaces cannot be made: {error}")))?;
    if !may {
        map_user("uid_map", uid.as_raw())
            .and_then(|()| map_user("gid_map", gid.as_raw()))
            .and_then(|()| credentials::keep_capabilities())
            .map_err(|why| setup_failure(&why))?;
    }
    // By this name, as another version may have taken the program's place since.
    let child = Command::new("/proc/self/exe")
        .args(["sandbox", "--init"])
        .arg(dir.path())
        .stdin(Stdio::null())
        // A group of its own, so that asking the trainer to stop asks its helpers too.
        .process_group(0)
        .spawn()
        .map_err(|error| setup_failure(&error.to_string()))?;
    let pid = i32::try_from(child.id()).map_err(|error| setup_failure(&error.to_string()))?;
    // A supervisor that has read a failure of the init process reads no more.
    let _ = send(io::stdout(), &SandboxReport::Init(pid));
    Ok(exit::OK)
}

/// In its own user namespace a process keeps its user, and has no other.
fn map_user(file: &str, id: u32) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        fs::write(format!("/proc/self/{name}"), text)
            .map_err(|error| format!("the user namespace cannot be set up ({name}): {error}"))
    };
    if file == "gid_map" {
        write("setgroups", "deny")?;
    }
    write(file, &format!("{id} {id} 1"))
}

/// The log, which the supervisor gave to this process as standard error; the file itself is out of the trainer's reach.
pub fn inherit_log() -> Result<Stdio, LaunchFailure> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(|error| setup_failure(&error.to_string()))
}

/// This host cannot do it.
pub fn setup_failure(why: &str) -> LaunchFailure {
    LaunchFailure::host_fault(format!("the job's sandbox cannot be set up on this host: {why}"))
}
