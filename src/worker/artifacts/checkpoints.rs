//! Which of a trainer's checkpoints are complete, and which of those to upload.

use std::collections::{BTreeMap, BTreeSet};

use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::artifacts::checkpoints::{ROLLING_SUFFIX, checkpoint_step};

use super::Artifact;
use crate::worker::files::AttemptExit;
use crate::worker::files::EX_TEMPFAIL;

/// A checkpoint without changes for this long is complete, in ms: trainers write its files one by one.
const STABLE_AFTER_MS: i64 = 5_000;

/// The conventional exit code of a clean exit on SIGTERM.
const SIGTERM_EXIT_CODE: i32 = 143;

/// The directory of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalCheckpoint {
    /// The name of the directory.
    pub name: String,
    /// When its newest file was modified, in ms.
    pub modified_ms: i64,
    pub files: Vec<Artifact>,
}

pub type CheckpointsByStep = BTreeMap<u64, LocalCheckpoint>;

/// What the trainer has reported about its checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedCheckpoints {
    /// Names of checkpoints reported as complete.
    pub finished: BTreeSet<String>,
    /// The current step.
    pub step: u64,
}

/// How the trainer's state affects its last checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainerState {
    /// Running; the current time, in ms.
    Running(i64),
    /// Exited cleanly: nothing is incomplete.
    Ended,
    /// Killed at this time in ms, possibly while writing a checkpoint.
    Interrupted(i64),
}

impl TrainerState {
    /// From the exit; `last_activity_ms` is used for an exit that was not observed.
    pub fn from_exit(exit: &AttemptExit, last_activity_ms: i64) -> Self {
        match (exit.code, exit.signal) {
            (Some(0 | EX_TEMPFAIL | SIGTERM_EXIT_CODE), _) => Self::Ended,
            (None, None) => Self::Interrupted(last_activity_ms),
            _ => Self::Interrupted(exit.ended_at.0),
        }
    }
}

/// Groups files by checkpoint. A directory without files is no checkpoint. If two have the same step, the one that is
/// not rolling counts.
pub fn group_by_step(files: Vec<Artifact>) -> CheckpointsByStep {
    let mut found = CheckpointsByStep::new();
    for artifact in files {
        let Some((name, _)) = artifact.file.path.split_once('/') else { continue };
        let Some(step) = checkpoint_step(name) else { continue };
        let empty = || LocalCheckpoint { name: name.to_owned(), modified_ms: i64::MIN, files: Vec::new() };
        let checkpoint = found.entry(step).or_insert_with(empty);
        match (checkpoint.name == name, name.ends_with(ROLLING_SUFFIX)) {
            (true, _) => {}
            (false, true) => continue,
            (false, false) => *checkpoint = empty(),
        }
        checkpoint.modified_ms = checkpoint.modified_ms.max(artifact.file.modified_ms);
        checkpoint.files.push(artifact);
    }
    found
}

/// The steps of complete checkpoints. Some trainers report completion. For others a checkpoint is complete once it has
/// not changed for a while and the trainer has moved on: to a later step, a later checkpoint, or its exit.
pub fn complete_steps(
    found: &CheckpointsByStep,
    reported: &ReportedCheckpoints,
    trainer: TrainerState,
) -> BTreeSet<u64> {
    let newest = found.keys().next_back().copied();
    let is_complete = |(step, checkpoint): &(&u64, &LocalCheckpoint)| {
        let (now, has_advanced) = match trainer {
            TrainerState::Ended => return true,
            TrainerState::Running(now) => (now, reported.step > **step || newest > Some(**step)),
            TrainerState::Interrupted(at) => (at, true),
        };
        reported.finished.contains(&checkpoint.name) || (has_advanced && now - checkpoint.modified_ms > STABLE_AFTER_MS)
    };
    found.iter().filter(is_complete).map(|(step, _)| *step).collect()
}

/// The complete checkpoints to upload, the most useful one first. `sent` are names.
pub fn pending_uploads(
    found: &CheckpointsByStep,
    complete: &BTreeSet<u64>,
    policy: CheckpointPolicy,
    sent: &BTreeSet<String>,
) -> Vec<u64> {
    let is_sent = |step: &u64| found.get(step).is_some_and(|checkpoint| sent.contains(&checkpoint.name));
    let newest_first = complete.iter().rev().copied();
    match policy {
        CheckpointPolicy::None => Vec::new(),
        // A checkpoint that a newer one has replaced is useless, even if the newer one was deleted here.
        CheckpointPolicy::Last => {
            let best = sent.iter().filter_map(|name| checkpoint_step(name)).max();
            newest_first.take(1).filter(|step| best.is_none_or(|best| *step > best)).collect()
        }
        CheckpointPolicy::All => newest_first.filter(|step| !is_sent(step)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::artifacts::classify;
    use crate::worker::files::UploadedFile;

    fn files(list: &[(&str, i64)]) -> CheckpointsByStep {
        let file = |(path, modified_ms): &(&str, i64)| Artifact {
            kind: classify(path),
            file: UploadedFile { path: (*path).to_owned(), modified_ms: *modified_ms, ..UploadedFile::default() },
        };
        group_by_step(list.iter().map(file).collect())
    }

    #[test]
    fn checkpoint_names_have_steps() {
        for (name, expected) in [
            ("checkpoint-500", Some(500)),
            ("checkpoint-0", Some(0)),
            ("checkpoint-10-rolling", Some(10)),
            ("checkpoint-rolling", None),
            ("checkpoint--rolling", None),
            ("checkpoint-final", None),
            ("checkpoint-+5", None),
            ("checkpoint-", None),
            ("checkpoint-99999999999999999999999", None),
            ("x-5", None),
        ] {
            assert_eq!(checkpoint_step(name), expected, "{name}");
        }
    }

    #[test]
    fn files_are_grouped_by_checkpoint() {
        let found =
            files(&[("checkpoint-5/a", 1), ("checkpoint-5/sub/b", 7), ("checkpoint-10/a", 3), ("w", 9), ("x/y", 9)]);
        let summary: Vec<_> =
            found.iter().map(|(step, checkpoint)| (*step, checkpoint.modified_ms, checkpoint.files.len())).collect();
        assert_eq!(summary, [(5, 7, 2), (10, 3, 1)]);
    }

    #[test]
    fn rolling_checkpoint_counts_unless_another_has_its_step() {
        for list in [
            [("checkpoint-5-rolling/a", 1), ("checkpoint-10-rolling/a", 2), ("checkpoint-10/a", 3)],
            [("checkpoint-10/a", 3), ("checkpoint-10-rolling/a", 2), ("checkpoint-5-rolling/a", 1)],
        ] {
            let found = files(&list);
            let summary: Vec<_> = found
                .iter()
                .map(|(step, checkpoint)| (*step, checkpoint.name.as_str(), checkpoint.files.len()))
                .collect();
            assert_eq!(summary, [(5, "checkpoint-5-rolling", 1), (10, "checkpoint-10", 1)]);
        }
    }

    #[test]
    fn checkpoint_is_complete_when_reported_or_trainer_moved_on() {
        let found = files(&[("checkpoint-5/a", 1_000), ("checkpoint-10/a", 10_000)]);
        let reported = |finished: &[&str], step| ReportedCheckpoints {
            finished: finished.iter().map(|name| (*name).to_owned()).collect(),
            step,
        };
        for (reported, trainer, expected) in [
            (reported(&[], 0), TrainerState::Running(6_000), &[][..]),
            (reported(&[], 0), TrainerState::Running(6_001), &[5]),
            (reported(&[], 10), TrainerState::Running(15_001), &[5]),
            (reported(&[], 11), TrainerState::Running(15_000), &[5]),
            (reported(&[], 11), TrainerState::Running(15_001), &[5, 10]),
            (reported(&["checkpoint-10"], 0), TrainerState::Running(10_000), &[5, 10]),
            (reported(&["checkpoint-10"], 0), TrainerState::Running(2_000), &[10]),
            (reported(&[], 0), TrainerState::Ended, &[5, 10]),
            (reported(&[], 0), TrainerState::Interrupted(10_500), &[5]),
            (reported(&[], 0), TrainerState::Interrupted(15_001), &[5, 10]),
            (reported(&["checkpoint-10"], 0), TrainerState::Interrupted(10_500), &[5, 10]),
        ] {
            let steps: Vec<_> = complete_steps(&found, &reported, trainer).into_iter().collect();
            assert_eq!(steps, expected, "{reported:?} {trainer:?}");
        }
    }

    #[test]
    fn clean_exits_differ_from_kills() {
        let exit = |code, signal| AttemptExit {
            code,
            signal,
            ended_at: app::domain::time::Timestamp(9),
            ..AttemptExit::default()
        };
        for (code, signal, expected) in [
            (Some(0), None, TrainerState::Ended),
            (Some(75), None, TrainerState::Ended),
            (Some(143), None, TrainerState::Ended),
            (None, Some(15), TrainerState::Interrupted(9)),
            (Some(1), None, TrainerState::Interrupted(9)),
            (None, Some(9), TrainerState::Interrupted(9)),
            (None, None, TrainerState::Interrupted(5)),
        ] {
            assert_eq!(TrainerState::from_exit(&exit(code, signal), 5), expected, "{code:?} {signal:?}");
        }
    }

    #[test]
    fn uploads_follow_the_policy() {
        let found = files(&[("checkpoint-5/a", 0), ("checkpoint-7/a", 0), ("checkpoint-10/a", 0)]);
        let all = BTreeSet::from([5, 7, 10]);
        for (policy, sent, expected) in [
            (CheckpointPolicy::None, &[][..], &[][..]),
            (CheckpointPolicy::Last, &[], &[10]),
            (CheckpointPolicy::Last, &["checkpoint-5"], &[10]),
            (CheckpointPolicy::Last, &["checkpoint-10"], &[]),
            (CheckpointPolicy::Last, &["checkpoint-12"], &[]),
            (CheckpointPolicy::All, &[], &[10, 7, 5]),
            (CheckpointPolicy::All, &["checkpoint-7"], &[10, 5]),
        ] {
            let sent: BTreeSet<_> = sent.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(pending_uploads(&found, &all, policy, &sent), expected, "{policy:?} {sent:?}");
        }
        assert_eq!(
            pending_uploads(&found, &BTreeSet::from([5, 7]), CheckpointPolicy::Last, &BTreeSet::new()),
            [7],
            "an incomplete checkpoint is not uploaded"
        );
    }
}
