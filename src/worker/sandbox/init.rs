//! The first process of a job's PID namespace. It reaps what the trainer leaves behind and reports the trainer's end. When it
//! ends, the kernel ends everything else in the namespace.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::wait::{WaitStatus, waitpid};

use super::enter::{log, setup};
use super::landlock::{self, Rules};
use super::plan::{Job, Plan};
use super::report::{Failure, Report, send};
use super::{credentials, mounts, seccomp};
use crate::exit;
use crate::files::AttemptDir;
use crate::supervisor::trainer;

/// Where the view is put together; empty on the host.
const ROOT: &str = "root";

/// Sets up the rest of the sandbox, starts the trainer, and waits until nothing is left of it.
///
/// # Errors
/// Why the trainer did not start.
pub fn run(dir: &AttemptDir, job: &Job) -> Result<u8, Failure> {
    let plan = &job.plan;
    let root = dir.join(ROOT);
    std::fs::create_dir_all(&root).map_err(|error| setup(&error.to_string()))?;
    // The trainer is this process's user, and must not read or control it.
    nix::sys::prctl::set_dumpable(false).map_err(|error| setup(&error.to_string()))?;
    mounts::enter(plan, &root).map_err(|why| setup(&why))?;
    credentials::drop_privileges(plan).map_err(|why| setup(&why))?;
    confine(plan).map_err(|why| setup(&why))?;
    let child = start(job)?;
    let told = send(io::stdout(), &Report::Running);
    told.map_err(|error| setup(&error.to_string()))?;
    wait(child);
    Ok(exit::OK)
}

/// Everything in this view was given to the trainer, so it may read all of it. A kernel without Landlock leaves it at that; the
/// mounts say the same, and Landlock adds what they cannot: signals, abstract sockets, and a second lock.
fn confine(plan: &Plan) -> Result<(), String> {
    let shared = ["/tmp", "/dev/shm"].map(PathBuf::from);
    let write: Vec<_> = plan.write.iter().cloned().chain(shared).collect();
    let rules = Rules { read: &[PathBuf::from("/")], write: &write, devices: &[PathBuf::from("/dev")] };
    if let Err(why) = landlock::restrict(&rules) {
        tracing::debug!(%why, "the sandbox has no Landlock");
    }
    // Files that may not be changed are on read-only mounts.
    seccomp::restrict(false)
}

fn start(job: &Job) -> Result<i32, Failure> {
    let trainers = |why: String| Failure { why, host_fault: false };
    let mut command = trainer::command(&job.command, &job.plan.work).map_err(trainers)?;
    let child = command.stdout(log()?).stderr(log()?).spawn();
    let child = child.map_err(|error| trainers(trainer::explain(&job.command, &error)))?;
    i32::try_from(child.id()).map_err(|error| setup(&error.to_string()))
}

/// Reaps until nothing is left, and says how the trainer ended when it does.
fn wait(trainer: i32) {
    loop {
        let (pid, code, signal) = match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal as i32)),
            Err(Errno::ECHILD) => return,
            Ok(_) | Err(_) => continue,
        };
        if pid.as_raw() == trainer {
            // A supervisor that is gone hears nothing; the next agent finds no process and says so.
            let _ = send(io::stdout(), &Report::Ended { code, signal });
        }
    }
}
