//! Checkpoints of jobs, besides their files.

use serde::{Deserialize, Serialize};

use crate::protocol::agents::CheckpointFile;

/// `POST /api/workers/job/{id}/checkpoint`: all files of a checkpoint have been sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletedCheckpoint {
    /// The name of its directory: `checkpoint-` and its step.
    pub name: String,
    /// All files of the checkpoint; at most 4096.
    pub files: Vec<CheckpointFile>,
}
