//! The sandbox of trainers on a worker.

use serde::{Deserialize, Serialize};

use crate::words::wire_words;

wire_words!(
    /// The sandbox level. A higher level includes the lower ones.
    #[derive(Default)]
    SandboxLevel {
        /// No sandbox: the trainer has the rights of the agent's user.
        #[default]
        None = "none",
        /// Access to given files only (Landlock), no privileges, and no dangerous system calls.
        Files = "files",
        /// Also separate files, processes, shared memory and devices (namespaces).
        Full = "full",
    }
);

impl SandboxLevel {
    /// Returns whether there is no sandbox.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The sandbox of a worker's host, as reported by its agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sandbox {
    /// The minimum level for every job, set by the host's owner.
    pub least: SandboxLevel,
    /// The maximum level that a job can request.
    pub most: SandboxLevel,
    /// Why a higher level is not supported, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_more: Option<String>,
    /// The resource limits of each job; not sent by older agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<JobLimits>,
}

/// The kernel's resource limits for a job on a worker's host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobLimits {
    /// Memory in bytes; none for unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads; none for unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Why limits cannot be set, as reported by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
