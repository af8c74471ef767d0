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

use super::landlock::{self, Rules};
use super::plan::{self, Job, Plan};
use super::report::{Failure, Report, send};
use super::{credentials, init, seccomp};
use crate::exit::{self, Fatal};
use crate::files::AttemptDir;
use crate::supervisor::trainer;

/// Devices that every program expects, and that give access to nothing.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Terminals, for a trainer with a user of its own. Others would open those that the agent's user has open elsewhere.
const TERMINALS: [&str; 2] = ["/dev/pts", "/dev/ptmx"];
/// Where shared memory is. At level `files` processes of one user can reach each other's there.
const SHARED_MEMORY: &str = "/dev/shm";

/// The hidden subcommand. `is_init` is the second half of level `full`, as the first process of its PID namespace.
///
/// # Errors
/// If not even the failure can be reported.
pub fn main(path: &Path, is_init: bool) -> Result<u8, Fatal> {
    // Whatever descriptor the agent was started with is not the trainer's.
    close_fds::set_fds_cloexec(3, &[]);
    // Nor is its umask: the directories that lead to what was given must be open to the trainer's user.
    umask(Mode::from_bits_truncate(0o022));
    let failed = match begin(&AttemptDir::at(path), is_init) {
        Ok(code) => return Ok(code),
        Err(failed) => failed,
    };
    send(io::stdout(), &Report::Failed(failed)).map_err(|error| Fatal::error(error.to_string()))?;
    Ok(exit::ERROR)
}

fn begin(dir: &AttemptDir, is_init: bool) -> Result<u8, Failure> {
    let job: Option<Job> = dir.read(plan::FILE).map_err(|error| setup(&error.to_string()))?;
    let job = job.ok_or_else(|| setup("sandbox.json is missing"))?;
    match (job.plan.level, is_init) {
        (SandboxLevel::Full, true) => init::run(dir, &job),
        (SandboxLevel::Full, false) => start_init(dir, &job.plan),
        (SandboxLevel::Files, _) => become_trainer(&job),
        (SandboxLevel::None, _) => Err(setup("its level is none")),
    }
}

/// Level `files`: this process becomes the trainer.
fn become_trainer(job: &Job) -> Result<u8, Failure> {
    let plan = &job.plan;
    // Before the log takes the place of standard output: it closes by itself when the trainer begins.
    let pipe = io::stdout().as_fd().try_clone_to_owned().map_err(|error| setup(&error.to_string()))?;
    credentials::limit(plan).map_err(|why| setup(&why))?;
    credentials::drop_privileges(plan).map_err(|why| setup(&why))?;
    confine(plan).map_err(|why| setup(&why))?;
    let mut command = trainer::command(&job.command, &plan.work).map_err(|why| Failure { why, host_fault: false })?;
    let error = command.stdout(log()?).stderr(log()?).exec();
    let failed = Failure { why: trainer::explain(&job.command, &error), host_fault: false };
    send(File::from(pipe), &Report::Failed(failed)).map_err(|error| setup(&error.to_string()))?;
    std::process::exit(i32::from(exit::ERROR))
}

/// The host's own files are within reach: only those of the plan can be opened.
fn confine(plan: &Plan) -> Result<(), String> {
    let read: Vec<_> = plan.read.iter().cloned().chain([PathBuf::from("/proc")]).collect();
    let shared = [plan.tmp.clone(), PathBuf::from(SHARED_MEMORY)];
    let write: Vec<_> = plan.write.iter().cloned().chain(shared).collect();
    let terminals = TERMINALS.iter().filter(|_| plan.user.is_some());
    let usual = DEVICES.iter().chain(terminals).map(PathBuf::from);
    let devices: Vec<_> = usual.chain(plan.devices.iter().cloned()).collect();
    let version = landlock::restrict(&Rules { read: &read, write: &write, devices: &devices })?;
    seccomp::restrict(version < landlock::KNOWS_TRUNCATE)
}

/// Level `full`: makes the namespaces, starts the init process in them, and ends, which makes the supervisor its parent.
fn start_init(dir: &AttemptDir, plan: &Plan) -> Result<u8, Failure> {
    // The init process cannot do this by itself once its memory is private.
    credentials::limit(plan).map_err(|why| setup(&why))?;
    let (uid, gid) = (geteuid(), getegid());
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    let may = caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_ADMIN).unwrap_or(false);
    let flags = if may { own } else { own | CloneFlags::CLONE_NEWUSER };
    unshare(flags).map_err(|error| setup(&format!("namespaces cannot be made: {error}")))?;
    if !may {
        map_user("uid_map", uid.as_raw())
            .and_then(|()| map_user("gid_map", gid.as_raw()))
            .and_then(|()| credentials::keep_in_user_namespace())
            .map_err(|why| setup(&why))?;
    }
    // By this name, as another version may have taken the program's place since.
    let child = Command::new("/proc/self/exe")
        .args(["sandbox", "--init"])
        .arg(dir.path())
        .stdin(Stdio::null())
        // A group of its own, so that asking the trainer to stop asks its helpers too.
        .process_group(0)
        .spawn()
        .map_err(|error| setup(&error.to_string()))?;
    let pid = i32::try_from(child.id()).map_err(|error| setup(&error.to_string()))?;
    // A supervisor that has read a failure of the init process reads no more.
    let _ = send(io::stdout(), &Report::Init(pid));
    Ok(exit::OK)
}

/// In its own user namespace a process is who it was, and nobody else.
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
pub fn log() -> Result<Stdio, Failure> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from).map_err(|error| setup(&error.to_string()))
}

/// This host cannot do it.
pub fn setup(why: &str) -> Failure {
    Failure::host(format!("the job's sandbox cannot be set up on this host: {why}"))
}
