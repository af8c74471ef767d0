//! The first process of a job's PID namespace. It reaps orphans and reports the trainer's exit. When it exits, the
//! kernel kills everything else in the namespace.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::wait::{WaitStatus, waitpid};

use super::enter::{inherit_log, setup_failure};
use super::landlock::{self, LandlockRules};
use super::plan::{SandboxJob, SandboxPlan};
use super::report::{self, LaunchFailure, SandboxReport, send};
use super::{credentials, mounts, seccomp};
use crate::worker::exit;
use crate::worker::files::AttemptDir;
use crate::worker::trainer_program::{build_command, explain_spawn_error};

/// Where the mount tree is assembled; empty on the host.
const ROOT_DIR: &str = "root";

/// Sets up the rest of the sandbox, starts the trainer, and waits until all its processes have exited.
///
/// # Errors
/// Why the trainer did not start.
pub fn run(dir: &AttemptDir, job: &SandboxJob) -> Result<u8, LaunchFailure> {
    let plan = &job.plan;
    let root = dir.join(ROOT_DIR);
    std::fs::create_dir_all(&root).map_err(|error| setup_failure(&error.to_string()))?;
    // The trainer runs as this process's user, and must not read or control it.
    nix::sys::prctl::set_dumpable(false).map_err(|error| setup_failure(&error.to_string()))?;
    mounts::enter_root(plan, &root).map_err(|why| setup_failure(&why))?;
    credentials::drop_privileges(plan).map_err(|why| setup_failure(&why))?;
    restrict(plan).map_err(|why| setup_failure(&why))?;
    // Not after the trainer, which may use up all processes.
    std::thread::Builder::new()
        .name("supervisor".to_owned())
        .spawn(end_with_supervisor)
        .map_err(|error| setup_failure(&error.to_string()))?;
    let child = spawn_trainer(job)?;
    let result = send(io::stdout(), &SandboxReport::Running);
    result.map_err(|error| setup_failure(&error.to_string()))?;
    reap_until_empty(child);
    Ok(exit::OK)
}

/// Exits with everything in the namespace when the supervisor exits. A parent-death signal does not do: this process gets
/// the supervisor as its parent only later.
fn end_with_supervisor() {
    if report::has_no_reader(io::stdout().as_fd(), PollTimeout::NONE) {
        std::process::exit(i32::from(exit::ERROR));
    }
}

/// The trainer may read everything in this mount tree. Without Landlock only the mounts protect the host; Landlock also
/// restricts signals and abstract sockets, and is a second layer.
fn restrict(plan: &SandboxPlan) -> Result<(), String> {
    let shared = ["/tmp", "/dev/shm"].map(PathBuf::from);
    let write: Vec<_> = plan.write.iter().cloned().chain(shared).collect();
    let rules = LandlockRules {
        read: &[PathBuf::from("/")],
        write: &write,
        devices: &[PathBuf::from("/dev")],
        update: &[PathBuf::from("/proc")],
    };
    if let Err(why) = landlock::restrict(&rules) {
        tracing::debug!(%why, "the sandbox has no Landlock");
    }
    // Files that may not be changed are on read-only mounts.
    seccomp::restrict(false)
}

fn spawn_trainer(job: &SandboxJob) -> Result<i32, LaunchFailure> {
    let trainer_failure = |why: String| LaunchFailure { why, host_fault: false };
    let mut command = build_command(&job.command, &job.plan.work).map_err(trainer_failure)?;
    let child = command.stdout(inherit_log()?).stderr(inherit_log()?).spawn();
    let child = child.map_err(|error| trainer_failure(explain_spawn_error(&job.command, &error)))?;
    i32::try_from(child.id()).map_err(|error| setup_failure(&error.to_string()))
}

/// Reaps until no process is left, and reports the trainer's exit when it happens.
fn reap_until_empty(trainer: i32) {
    loop {
        let (pid, code, signal) = match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal as i32)),
            Err(Errno::ECHILD) => return,
            Ok(_) | Err(_) => continue,
        };
        if pid.as_raw() == trainer {
            // The supervisor may have died; the next agent then finds no process and reports that.
            let _ = send(io::stdout(), &SandboxReport::Ended { code, signal });
        }
    }
}
