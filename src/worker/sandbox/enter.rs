//! The process between supervisor and trainer: it enters the sandbox, and then becomes the trainer or starts it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use app::domain::sandbox::SandboxLevel;
use nix::poll::PollTimeout;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{getegid, geteuid};

use super::landlock::{self, LandlockRules};
use super::plan::{self, SandboxJob, SandboxPlan};
use super::proc_files::kernel_is_protected;
use super::report::{self, LaunchFailure, SandboxReport, send};
use super::{credentials, init, seccomp};
use crate::worker::exit::{self, FatalError};
use crate::worker::files::AttemptDir;
use crate::worker::trainer_program::{build_command, explain_spawn_error};

/// Devices that every program expects, and that give access to nothing.
const DEVICE_FILES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Terminals, only for a trainer with a separate user. Any other trainer could open the terminals of the agent's user.
const TERMINAL_DEVICES: [&str; 2] = ["/dev/pts", "/dev/ptmx"];
/// Shared memory. At level `files`, processes of one user can access each other's.
const SHARED_MEMORY: &str = "/dev/shm";
const PROC: &str = "/proc";

/// The hidden subcommand. With `is_init` it is the first process of the PID namespace of level `full`.
///
/// # Errors
/// If not even the failure can be reported.
pub fn main(path: &Path, is_init: bool) -> Result<u8, FatalError> {
    // The trainer does not inherit descriptors that the agent was started with.
    close_fds::set_fds_cloexec(3, &[]);
    let failure = match enter_sandbox(&AttemptDir::from_path(path), is_init) {
        Ok(code) => return Ok(code),
        Err(failure) => failure,
    };
    send(io::stdout(), &SandboxReport::Failed(failure)).map_err(|error| FatalError::error(error.to_string()))?;
    Ok(exit::ERROR)
}

fn enter_sandbox(dir: &AttemptDir, is_init: bool) -> Result<u8, LaunchFailure> {
    let job: Option<SandboxJob> = dir.read_json(plan::FILE).map_err(|error| setup_failure(&error.to_string()))?;
    let job = job.ok_or_else(|| setup_failure("sandbox.json is missing"))?;
    if job.plan.level != SandboxLevel::None {
        // Not the agent's: the trainer's user must be able to enter the directories above its files.
        umask(Mode::from_bits_truncate(0o022));
    }
    match (job.plan.level, is_init) {
        (SandboxLevel::Full, true) => init::run(dir, &job),
        (SandboxLevel::Full, false) => start_init(dir, &job.plan),
        (SandboxLevel::Files | SandboxLevel::None, _) => exec_trainer(&job),
    }
}

/// Levels `files` and `none`: this process becomes the trainer.
fn exec_trainer(job: &SandboxJob) -> Result<u8, LaunchFailure> {
    let plan = &job.plan;
    // Kept before the log replaces standard output. It is closed automatically when the trainer starts.
    let pipe = io::stdout().as_fd().try_clone_to_owned().map_err(|error| setup_failure(&error.to_string()))?;
    if plan.level == SandboxLevel::Files {
        credentials::apply_limits(plan).map_err(|why| setup_failure(&why))?;
        credentials::drop_privileges(plan).map_err(|why| setup_failure(&why))?;
        restrict(plan).map_err(|why| setup_failure(&why))?;
    }
    end_with_supervisor(pipe.as_fd())?;
    let mut command =
        build_command(&job.command, &plan.work).map_err(|why| LaunchFailure { why, host_fault: false })?;
    let error = command.stdout(inherit_log()?).stderr(inherit_log()?).exec();
    let failure = LaunchFailure { why: explain_spawn_error(&job.command, &error), host_fault: false };
    send(File::from(pipe), &SandboxReport::Failed(failure)).map_err(|error| setup_failure(&error.to_string()))?;
    std::process::exit(i32::from(exit::ERROR))
}

/// The kernel kills this process, and so the trainer, when the supervisor exits. Not earlier: a change of the user undoes
/// it.
fn end_with_supervisor(pipe: BorrowedFd<'_>) -> Result<(), LaunchFailure> {
    set_pdeathsig(Signal::SIGKILL).map_err(|error| setup_failure(&error.to_string()))?;
    // It may have exited before that.
    if report::has_no_reader(pipe, PollTimeout::ZERO) { std::process::exit(i32::from(exit::ERROR)) } else { Ok(()) }
}

/// The host's files are visible at this level; the trainer can open only those in the plan.
fn restrict(plan: &SandboxPlan) -> Result<(), String> {
    let read: Vec<_> = plan.read.iter().cloned().chain([PathBuf::from(PROC)]).collect();
    let shared = [plan.tmp.clone(), PathBuf::from(SHARED_MEMORY)];
    let write: Vec<_> = plan.write.iter().cloned().chain(shared).collect();
    let terminals = TERMINAL_DEVICES.iter().filter(|_| plan.user.is_some());
    let common = DEVICE_FILES.iter().chain(terminals).map(PathBuf::from);
    let devices: Vec<_> = common.chain(plan.devices.iter().cloned()).collect();
    let proc = [PathBuf::from(PROC)];
    let update = if kernel_is_protected(Path::new(PROC)) { &proc[..] } else { &[] };
    let version = landlock::restrict(&LandlockRules { read: &read, write: &write, devices: &devices, update })?;
    seccomp::restrict(version < landlock::TRUNCATE_ABI)
}

/// Level `full`: creates the namespaces, starts the init process in them, and exits, so that the supervisor becomes its
/// parent.
fn start_init(dir: &AttemptDir, plan: &SandboxPlan) -> Result<u8, LaunchFailure> {
    // The init process cannot do this by itself once its memory is private.
    credentials::apply_limits(plan).map_err(|why| setup_failure(&why))?;
    let (uid, gid) = (geteuid(), getegid());
    let namespaces =
        CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    let is_privileged = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false);
    let flags = if is_privileged { namespaces } else { namespaces | CloneFlags::CLONE_NEWUSER };
    unshare(flags).map_err(|error| setup_failure(&format!("cannot create namespaces: {error}")))?;
    if !is_privileged {
        map_user("uid_map", uid.as_raw())
            .and_then(|()| map_user("gid_map", gid.as_raw()))
            .and_then(|()| credentials::keep_capabilities())
            .map_err(|why| setup_failure(&why))?;
    }
    // Not by its path, because another version may have replaced the program.
    let child = Command::new("/proc/self/exe")
        .args(["sandbox", "--init"])
        .arg(dir.path())
        .stdin(Stdio::null())
        // A separate process group, so that a stop request for the trainer also reaches its helpers.
        .process_group(0)
        .spawn()
        .map_err(|error| setup_failure(&error.to_string()))?;
    let pid = i32::try_from(child.id()).map_err(|error| setup_failure(&error.to_string()))?;
    // A supervisor that has read a failure of the init process reads no more.
    let _ = send(io::stdout(), &SandboxReport::Init(pid));
    Ok(exit::OK)
}

/// Maps only the process's own user into its new user namespace.
fn map_user(file: &str, id: u32) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        fs::write(format!("/proc/self/{name}"), text)
            .map_err(|error| format!("cannot set up the user namespace ({name}): {error}"))
    };
    if file == "gid_map" {
        write("setgroups", "deny")?;
    }
    write(file, &format!("{id} {id} 1"))
}

/// The log, which this process has as standard error; the trainer cannot open the file itself.
pub fn inherit_log() -> Result<Stdio, LaunchFailure> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(|error| setup_failure(&error.to_string()))
}

/// The failure if this host cannot set up the sandbox.
pub fn setup_failure(why: &str) -> LaunchFailure {
    LaunchFailure::host_fault(format!("the job's sandbox cannot be set up on this host: {why}"))
}
