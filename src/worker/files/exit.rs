//! How an attempt ends: the stop request, and the exit.

use app::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::DiskAtExit;

/// Why an attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// The job is exclusive and its lease expires; it is requeued.
    Lease,
    /// The host is leaving; the job is requeued.
    Requeue,
    /// Exceeds its disk limit.
    Disk,
    /// Cancelled by a user.
    Cancelled,
    /// Replaced by another attempt: nothing more is reported.
    Superseded,
}

impl StopCause {
    /// Replaces a request by this one, unless it is as strong. Returns whether it did.
    pub fn replace_weaker(self, order: &mut Option<Self>) -> bool {
        let is_stronger = order.is_none_or(|earlier| earlier < self);
        if is_stronger {
            *order = Some(self);
        }
        is_stronger
    }
}

/// The stop request: `stop.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub cause: StopCause,
    /// Time between asking and killing.
    pub grace_seconds: u64,
}

/// The exit code (`EX_TEMPFAIL` of sysexits) of a trainer that asks for a retry elsewhere, because the job is not at
/// fault.
pub const EX_TEMPFAIL: i32 = 75;

/// How the attempt ended: `exit.json`. Once it exists, no process of the attempt is alive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptExit {
    pub version: u32,
    /// The exit code, if the trainer exited by itself.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Why it never ran, or why its exit is unknown.
    pub error: Option<String>,
    /// The stop request that ended it, if it was still running.
    pub stopped: Option<StopCause>,
    /// Whether the host is at fault.
    #[serde(default)]
    pub host_fault: bool,
    /// Whether the kernel killed one of its processes because memory was full.
    #[serde(default)]
    pub out_of_memory: bool,
    /// The job's memory limit in bytes, if it was exceeded.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    #[serde(default)]
    pub disk: Option<DiskAtExit>,
    /// Whether the output and the log are on disk: without it, they may be incomplete after a crash of the host.
    /// Earlier versions did not record it.
    #[serde(default = "is_flushed_in_earlier_versions")]
    pub is_flushed: bool,
    pub ended_at: Timestamp,
}

const fn is_flushed_in_earlier_versions() -> bool {
    true
}
