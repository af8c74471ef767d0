//! The trainer's sandbox: what a job can read, write and reach on this host.
//!
//! | level | what confines the trainer |
//! |---|---|
//! | `none` | the agent's user |
//! | `files` | Landlock for files, signals and abstract sockets; seccomp; no new privileges |
//! | `full` | `files`, and its own namespaces for mounts, processes, IPC and host name; its own `/tmp`, `/dev`, `/dev/shm` |
//!
//! The supervisor stays outside. It starts `simpletuner-worker sandbox DIR` ([`enter`]), which applies the [`plan`] and
//! then becomes the trainer (`files`, and exclusive jobs at `none`) or leaves a small init process as the trainer's parent
//! ([`init`], `full`). Both report to the supervisor on their standard output ([`report`]).

mod credentials;
pub mod enter;
pub mod environment;
pub mod host;
mod init;
mod landlock;
mod mounts;
mod namespace_diagnosis;
pub mod plan;
pub mod proc_files;
pub mod report;
mod seccomp;
mod system_paths;
pub mod trainer_files;
pub mod users;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use self::report::SandboxReportReader;
use crate::worker::files::AttemptDir;

/// Starts the process that enters the sandbox and becomes the trainer, in a separate process group. The trainer's
/// output goes to `log`.
///
/// # Errors
/// If it cannot be started.
pub fn spawn(
    dir: &AttemptDir,
    environment: &BTreeMap<String, String>,
    log: File,
) -> io::Result<(Child, SandboxReportReader)> {
    // Not by its path, because another version may have replaced the program.
    let mut child = Command::new("/proc/self/exe")
        .arg("sandbox")
        .arg(dir.path())
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()?;
    let pipe = child.stdout.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
    Ok((child, SandboxReportReader::new(pipe)))
}
