//! Checkpoints of a job, found by the paths of its files.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::domain::ids::AttemptNumber;
use crate::domain::time::Timestamp;
use crate::protocol::artifacts::ArtifactView;
use crate::protocol::status::ArtifactKind;

/// The files of one checkpoint of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointFiles {
    pub attempt: AttemptNumber,
    /// The name of its directory.
    pub name: String,
    pub step: u64,
    pub files: Vec<ArtifactView>,
    /// The time of its newest file.
    pub at: Timestamp,
}

/// Groups checkpoint files by checkpoint, the highest step first.
pub(crate) fn group_checkpoints(files: &[ArtifactView]) -> Vec<CheckpointFiles> {
    let mut checkpoints: BTreeMap<_, CheckpointFiles> = BTreeMap::new();
    for file in files.iter().filter(|file| file.kind == ArtifactKind::Checkpoint) {
        let Some((name, step)) = checkpoint_directory(&file.path) else { continue };
        let checkpoint =
            checkpoints.entry((Reverse(step), Reverse(file.attempt), name)).or_insert_with(|| CheckpointFiles {
                attempt: file.attempt,
                name: name.to_owned(),
                step,
                files: Vec::new(),
                at: file.created_at,
            });
        checkpoint.at = checkpoint.at.max(file.created_at);
        checkpoint.files.push(file.clone());
    }
    checkpoints.into_values().collect()
}

/// Returns the first directory of a path and its step if it is a checkpoint: `checkpoint-500/model.safetensors`.
fn checkpoint_directory(path: &str) -> Option<(&str, u64)> {
    let (name, _) = path.split_once('/')?;
    Some((name, name.strip_prefix("checkpoint-")?.parse().ok()?))
}

#[cfg(test)]
pub(crate) fn file(path: &str, kind: ArtifactKind, attempt: u32, at: i64) -> ArtifactView {
    ArtifactView {
        path: path.to_owned(),
        attempt: AttemptNumber(attempt),
        kind,
        size_bytes: 10,
        sha256: String::new(),
        created_at: Timestamp(at),
        url: format!("/api/queue/j_1/artifacts/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_gathered_by_attempt_and_step() {
        let files = [
            file("checkpoint-9/a", ArtifactKind::Checkpoint, 1, 5),
            file("checkpoint-100/a", ArtifactKind::Checkpoint, 1, 7),
            file("checkpoint-100/b", ArtifactKind::Checkpoint, 1, 9),
            file("checkpoint-100/a", ArtifactKind::Checkpoint, 2, 8),
            file("checkpoint-x/a", ArtifactKind::Checkpoint, 1, 1),
            file("checkpoint-7/a", ArtifactKind::Other, 1, 1),
            file("model.safetensors", ArtifactKind::Final, 1, 1),
        ];
        let checkpoints: Vec<_> =
            group_checkpoints(&files).into_iter().map(|c| (c.step, c.attempt.0, c.files.len(), c.at.0)).collect();
        assert_eq!(checkpoints, [(100, 2, 1, 8), (100, 1, 2, 9), (9, 1, 1, 5)]);
    }
}
