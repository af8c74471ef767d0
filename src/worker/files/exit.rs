//! How an attempt ends: the order to stop, and what became of it.

use app::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Disk;

/// Why an attempt is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// It is exclusive, and its lease ends: the job goes back to the queue.
    Lease,
    /// This host leaves: the job goes back to the queue.
    Requeue,
    /// It takes too much of the disk.
    Disk,
    /// A person cancelled it.
    Cancelled,
    /// Another attempt has replaced it: no reports any more.
    Superseded,
}

/// The order to stop: `stop.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    /// Why.
    pub cause: StopCause,
    /// Between asking and killing.
    pub grace_seconds: u64,
}

/// By convention of sysexits (`EX_TEMPFAIL`): not the job's fault, try again elsewhere. A trainer's exit code.
pub const TRY_AGAIN: i32 = 75;

/// How it ended: `exit.json`. When it exists, no process of the attempt is alive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The exit code, if the trainer ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it never ran, or why nothing is known of its end.
    pub error: Option<String>,
    /// The order that ended it, if it had not ended before.
    pub stopped: Option<StopCause>,
    /// Whether the host's fault.
    #[serde(default)]
    pub host_fault: bool,
    /// Whether the kernel killed something of it for want of memory.
    #[serde(default)]
    pub out_of_memory: bool,
    /// The job's own limit of memory in bytes, if it ran into that.
    #[serde(default)]
    pub memory_limit: Option<u64>,
    /// How the disk was.
    #[serde(default)]
    pub disk: Option<Disk>,
    /// When.
    pub ended_at: Timestamp,
}
