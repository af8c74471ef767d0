//! What is said of checkpoints beside their files.

use serde::{Deserialize, Serialize};

use super::worker::CheckpointFile;

/// `POST /api/workers/job/{id}/checkpoint`: all files of a checkpoint were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WholeCheckpoint {
    /// Its directory's name: `checkpoint-` and its step.
    pub name: String,
    /// Every file of it, as it was sent; at most 4096.
    pub files: Vec<CheckpointFile>,
}
