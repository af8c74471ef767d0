//! Checkpoints of jobs, besides their files.

use serde::{Deserialize, Serialize};

use crate::protocol::agents::CheckpointFile;

/// Suffix of checkpoints that the trainer replaces by the next one.
pub const ROLLING_SUFFIX: &str = "-rolling";

/// The step of a checkpoint by its directory name: `checkpoint-` and digits; SimpleTuner's rolling ones end in
/// `-rolling`.
pub fn checkpoint_step(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("checkpoint-")?;
    let digits = digits.strip_suffix(ROLLING_SUFFIX).unwrap_or(digits);
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a file is below the directory of a checkpoint.
pub fn is_checkpoint_path(path: &str) -> bool {
    path.split_once('/').is_some_and(|(name, _)| checkpoint_step(name).is_some())
}

/// `POST /api/workers/job/{id}/checkpoint`: all files of a checkpoint have been sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletedCheckpoint {
    /// The name of its directory: `checkpoint-` and its step.
    pub name: String,
    /// All files of the checkpoint; at most 4096.
    pub files: Vec<CheckpointFile>,
}
