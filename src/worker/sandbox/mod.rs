//! The trainer's sandbox: what a job can read, write and reach on this host.
//!
//! | level | what confines the trainer |
//! |---|---|
//! | `none` | the agent's user |
//! | `files` | Landlock on files, signals and abstract sockets; seccomp; no new privileges |
//! | `full` | `files`, and namespaces of its own for mounts, processes, IPC and host name; `/tmp`, `/dev` and `/dev/shm` of its own |
//!
//! The supervisor stays outside. It starts a step between itself and the trainer, `simpletuner-worker sandbox DIR`
//! ([`enter`]), which confines itself as [`Plan`] says and then becomes the trainer (`files`) or leaves a small init process as
//! the trainer's parent ([`init`], `full`). What both need to tell the supervisor they write to their standard output
//! ([`report`]).

mod credentials;
pub mod enter;
pub mod environment;
pub mod host;
mod init;
mod landlock;
mod mounts;
pub mod plan;
mod refusal;
pub mod report;
mod seccomp;
mod system;
pub mod trainer_files;
pub mod users;

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use self::report::Reports;
use crate::files::AttemptDir;

/// Starts the step that confines itself and becomes the trainer, in a process group of its own. What the trainer prints goes to
/// `log`.
///
/// # Errors
/// If it cannot be started.
pub fn start(
    dir: &AttemptDir,
    variables: impl IntoIterator<Item = (&'static str, String)>,
    log: File,
) -> io::Result<(Child, Reports)> {
    // By this name, as another version may have taken the program's place since.
    let mut child = Command::new("/proc/self/exe")
        .arg("sandbox")
        .arg(dir.path())
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()?;
    let pipe = child.stdout.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
    Ok((child, Reports::new(pipe)))
}
