//! What a trainer is given: decided by the agent, written down in `spec.json`, carried out by [`super::enter`].

use std::path::PathBuf;

use app::domain::sandbox::SandboxLevel;
use serde::{Deserialize, Serialize};

/// The file in the attempt's directory.
pub const FILE: &str = "sandbox.json";

/// What [`super::enter`] does: [`FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The trainer's command, program first.
    pub command: Vec<String>,
    /// Its sandbox.
    pub plan: Plan,
}

/// The sandbox of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// How closely it is confined.
    pub level: SandboxLevel,
    /// The user it runs as; none: the agent's own. Only an agent that runs as root can choose.
    pub user: Option<User>,
    /// Files and directories that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may also change.
    pub write: Vec<PathBuf>,
    /// Device files that it may use: those of its GPUs.
    pub devices: Vec<PathBuf>,
    /// A directory for its temporary files; `/tmp` for a trainer at level `full`.
    pub tmp: PathBuf,
    /// The working directory that it starts in.
    pub work: PathBuf,
    /// How large `/dev/shm` may grow, in bytes; only at level `full`.
    pub shared_memory_bytes: u64,
    /// How many processes and threads it may have.
    pub max_processes: Option<u64>,
}

/// Numbers of a user and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}
