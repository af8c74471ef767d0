//! What a trainer may access: decided by the agent, stored in `sandbox.json`, applied by [`super::enter`].

use std::path::PathBuf;

use app::domain::sandbox::SandboxLevel;
use serde::{Deserialize, Serialize};

/// The file in the attempt's directory.
pub const FILE: &str = "sandbox.json";

/// The input of [`super::enter`]: [`FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxJob {
    /// The trainer's command, program first.
    pub command: Vec<String>,
    pub plan: SandboxPlan,
}

/// The sandbox of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxPlan {
    pub level: SandboxLevel,
    /// The trainer's user; `None`: the agent's own. Only an agent that runs as root can choose.
    pub user: Option<SandboxUser>,
    /// Files and directories that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may also write to.
    pub write: Vec<PathBuf>,
    /// Device files of its GPUs.
    pub devices: Vec<PathBuf>,
    /// A directory for its temporary files; `/tmp` for a trainer at level `full`.
    pub tmp: PathBuf,
    /// Its working directory.
    pub work: PathBuf,
    /// Max size of `/dev/shm` in bytes; only at level `full`.
    pub shared_memory_bytes: u64,
    /// Max processes and threads.
    pub max_processes: Option<u64>,
}

/// IDs of a user and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxUser {
    pub uid: u32,
    pub gid: u32,
}
