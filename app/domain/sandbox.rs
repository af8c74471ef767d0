//! How closely a worker confines the trainers it runs.

use serde::{Deserialize, Serialize};

/// From nothing to all that the kernel offers. A higher level includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// The trainer can do what the agent's user can do.
    #[default]
    None,
    /// It reads and writes only the files it was given (Landlock), and makes none of the system calls that it never needs.
    Files,
    /// It also has its own view of files, processes, shared memory and devices (namespaces).
    Full,
}

impl SandboxLevel {
    /// All levels, weakest first.
    pub const ALL: [Self; 3] = [Self::None, Self::Files, Self::Full];

    /// Its word on the wire, in the database and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Files => "files",
            Self::Full => "full",
        }
    }

    /// Whether nothing is confined.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The level with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// How a worker's host confines trainers, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sandbox {
    /// What every job gets at least, as the host's owner wants it.
    pub least: SandboxLevel,
    /// The most that a job can ask for.
    pub most: SandboxLevel,
    /// Why it is not more, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_more: Option<String>,
    /// What each job is held to; an older agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<JobLimits>,
}

/// What the kernel lets a job take of a worker's host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobLimits {
    /// Memory in bytes; none: as much as there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Processes and threads; none: as many as the host has room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Why a limit cannot be set there, in the agent's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}
