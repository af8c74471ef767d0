//! Which of a trainer's checkpoints are whole, and which of those is to be sent.

use std::collections::{BTreeMap, BTreeSet};

use app::protocol::dispatch::CheckpointPolicy;

use super::Artifact;
use crate::files::Exit;
use crate::files::TRY_AGAIN;

/// A checkpoint in which nothing has changed for so long is finished, in ms: the trainer writes its files one by one.
const SETTLED_MS: i64 = 5_000;

/// The exit code of those who end in order on SIGTERM, by convention.
const TERMINATED: i32 = 143;

/// A checkpoint's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its directory's name.
    pub name: String,
    /// When its newest file was changed, in ms.
    pub changed_ms: i64,
    /// Its files.
    pub files: Vec<Artifact>,
}

/// Checkpoints by step.
pub type Checkpoints = BTreeMap<u64, Checkpoint>;

/// What the trainer has said of its checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Checkpoints that it has called finished, by name.
    pub finished: BTreeSet<String>,
    /// The step at which it is.
    pub step: u64,
}

/// How its end bears upon the last checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trainer {
    /// It goes on; this is the time, in ms.
    Runs(i64),
    /// It ended in order: nothing is half done.
    Ended,
    /// It was cut off, and lived until this time in ms: perhaps in the middle of a checkpoint.
    CutOff(i64),
}

impl Trainer {
    /// By its end; `last_sign` is when something was last heard of it, in ms, for an end that nobody saw.
    pub fn after(exit: &Exit, last_sign: i64) -> Self {
        match (exit.code, exit.signal) {
            (Some(0 | TRY_AGAIN | TERMINATED), _) => Self::Ended,
            (None, None) => Self::CutOff(last_sign),
            _ => Self::CutOff(exit.ended_at.0),
        }
    }
}

/// The step of a checkpoint, by its directory's name: `checkpoint-` and digits; SimpleTuner's rolling ones end in `-rolling`.
pub fn step(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("checkpoint-")?;
    let digits = digits.strip_suffix(ROLLING).unwrap_or(digits);
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// How the name of a checkpoint ends that the trainer replaces by the next one.
const ROLLING: &str = "-rolling";

/// The checkpoints among files. One that has no file is none yet. Of two of one step, the one that stays counts.
pub fn among(files: Vec<Artifact>) -> Checkpoints {
    let mut found = Checkpoints::new();
    for artifact in files {
        let Some((name, _)) = artifact.file.path.split_once('/') else { continue };
        let Some(step) = step(name) else { continue };
        let empty = || Checkpoint { name: name.to_owned(), changed_ms: i64::MIN, files: Vec::new() };
        let checkpoint = found.entry(step).or_insert_with(empty);
        match (checkpoint.name == name, name.ends_with(ROLLING)) {
            (true, _) => {}
            (false, true) => continue,
            (false, false) => *checkpoint = empty(),
        }
        checkpoint.changed_ms = checkpoint.changed_ms.max(artifact.file.modified_ms);
        checkpoint.files.push(artifact);
    }
    found
}

/// The steps of the whole checkpoints. Some trainers say it; of others it is known once nothing has changed for a while
/// and they have gone on: to a later step, a later checkpoint, or their end.
pub fn whole(found: &Checkpoints, said: &Said, trainer: Trainer) -> BTreeSet<u64> {
    let newest = found.keys().next_back().copied();
    let is_whole = |(step, checkpoint): &(&u64, &Checkpoint)| {
        let (now, went_on) = match trainer {
            Trainer::Ended => return true,
            Trainer::Runs(now) => (now, said.step > **step || newest > Some(**step)),
            Trainer::CutOff(at) => (at, true),
        };
        said.finished.contains(&checkpoint.name) || (went_on && now - checkpoint.changed_ms > SETTLED_MS)
    };
    found.iter().filter(is_whole).map(|(step, _)| *step).collect()
}

/// The whole checkpoints that are to be sent, the most useful one first. `sent` are names.
pub fn due(found: &Checkpoints, whole: &BTreeSet<u64>, policy: CheckpointPolicy, sent: &BTreeSet<String>) -> Vec<u64> {
    let is_sent = |step: &u64| found.get(step).is_some_and(|checkpoint| sent.contains(&checkpoint.name));
    let newest_first = whole.iter().rev().copied();
    match policy {
        CheckpointPolicy::None => Vec::new(),
        // One that a newer one has replaced is of no use any more, even if that is gone from this disk.
        CheckpointPolicy::Last => {
            let best = sent.iter().filter_map(|name| step(name)).max();
            newest_first.take(1).filter(|step| best.is_none_or(|best| *step > best)).collect()
        }
        CheckpointPolicy::All => newest_first.filter(|step| !is_sent(step)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifacts::kind;
    use crate::files::Uploaded;

    fn files(list: &[(&str, i64)]) -> Checkpoints {
        let file = |(path, modified_ms): &(&str, i64)| Artifact {
            kind: kind(path),
            file: Uploaded { path: (*path).to_owned(), modified_ms: *modified_ms, ..Uploaded::default() },
        };
        among(list.iter().map(file).collect())
    }

    #[test]
    fn names_and_steps() {
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
            assert_eq!(step(name), expected, "{name}");
        }
    }

    #[test]
    fn files_are_gathered() {
        let found =
            files(&[("checkpoint-5/a", 1), ("checkpoint-5/sub/b", 7), ("checkpoint-10/a", 3), ("w", 9), ("x/y", 9)]);
        let seen: Vec<_> = found.iter().map(|(step, it)| (*step, it.changed_ms, it.files.len())).collect();
        assert_eq!(seen, [(5, 7, 2), (10, 3, 1)]);
    }

    #[test]
    fn a_rolling_checkpoint_is_one_unless_there_is_another_of_its_step() {
        for list in [
            [("checkpoint-5-rolling/a", 1), ("checkpoint-10-rolling/a", 2), ("checkpoint-10/a", 3)],
            [("checkpoint-10/a", 3), ("checkpoint-10-rolling/a", 2), ("checkpoint-5-rolling/a", 1)],
        ] {
            let found = files(&list);
            let seen: Vec<_> = found.iter().map(|(step, it)| (*step, it.name.as_str(), it.files.len())).collect();
            assert_eq!(seen, [(5, "checkpoint-5-rolling", 1), (10, "checkpoint-10", 1)]);
        }
    }

    #[test]
    fn a_checkpoint_is_whole_when_said_or_when_the_trainer_has_gone_on() {
        let found = files(&[("checkpoint-5/a", 1_000), ("checkpoint-10/a", 10_000)]);
        let said =
            |finished: &[&str], step| Said { finished: finished.iter().map(|name| (*name).to_owned()).collect(), step };
        for (said, trainer, expected) in [
            (said(&[], 0), Trainer::Runs(6_000), &[][..]),
            (said(&[], 0), Trainer::Runs(6_001), &[5]),
            (said(&[], 10), Trainer::Runs(15_001), &[5]),
            (said(&[], 11), Trainer::Runs(15_000), &[5]),
            (said(&[], 11), Trainer::Runs(15_001), &[5, 10]),
            (said(&["checkpoint-10"], 0), Trainer::Runs(10_000), &[5, 10]),
            (said(&["checkpoint-10"], 0), Trainer::Runs(2_000), &[10]),
            (said(&[], 0), Trainer::Ended, &[5, 10]),
            (said(&[], 0), Trainer::CutOff(10_500), &[5]),
            (said(&[], 0), Trainer::CutOff(15_001), &[5, 10]),
            (said(&["checkpoint-10"], 0), Trainer::CutOff(10_500), &[5, 10]),
        ] {
            let steps: Vec<_> = whole(&found, &said, trainer).into_iter().collect();
            assert_eq!(steps, expected, "{said:?} {trainer:?}");
        }
    }

    #[test]
    fn ends_in_order_and_others() {
        let exit = |code, signal| Exit { code, signal, ended_at: app::domain::time::Timestamp(9), ..Exit::default() };
        for (code, signal, expected) in [
            (Some(0), None, Trainer::Ended),
            (Some(75), None, Trainer::Ended),
            (Some(143), None, Trainer::Ended),
            (None, Some(15), Trainer::CutOff(9)),
            (Some(1), None, Trainer::CutOff(9)),
            (None, Some(9), Trainer::CutOff(9)),
            (None, None, Trainer::CutOff(5)),
        ] {
            assert_eq!(Trainer::after(&exit(code, signal), 5), expected, "{code:?} {signal:?}");
        }
    }

    #[test]
    fn what_is_sent_follows_the_policy() {
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
            assert_eq!(due(&found, &all, policy, &sent), expected, "{policy:?} {sent:?}");
        }
        assert_eq!(
            due(&found, &BTreeSet::from([5, 7]), CheckpointPolicy::Last, &BTreeSet::new()),
            [7],
            "what is not whole waits"
        );
    }
}
