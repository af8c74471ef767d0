//! Where only the last checkpoint is kept, a newer one that is whole takes the place of those before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::ids::Attempt;
use app::domain::job::{Checkpoints, Job};

use super::Core;
use super::refusal::Refusal;
use super::unit::Unit;

/// The step of a checkpoint, by the name of its directory; rolling ones end in `-rolling`.
pub fn step(name: &str) -> Option<i64> {
    let digits = name.strip_prefix("checkpoint-")?;
    let digits = digits.strip_suffix("-rolling").unwrap_or(digits);
    digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Gives up what a checkpoint of this job takes the place of. True if there are files to remove after the commit.
pub async fn make_way(unit: &mut Unit<'_>, job: &Job, newer: (i64, Attempt)) -> Result<bool, Refusal> {
    if job.spec.checkpoints != Checkpoints::Last {
        return Ok(false);
    }
    let files = unit.tx.checkpoint_files(&job.id).await?;
    let older = before(newer, &files);
    for (attempt, directory) in &older {
        unit.tx.give_up_checkpoint(&job.id, *attempt, directory).await?;
    }
    Ok(!older.is_empty())
}

/// The directories from which nobody would go on once this one is whole: of an earlier step, or of the same step and an
/// earlier attempt. What was sent in part is among them; what a later step has stays, whoever made it.
fn before(newer: (i64, Attempt), files: &[(Attempt, String)]) -> BTreeSet<(Attempt, &str)> {
    let mut older = BTreeSet::new();
    for (attempt, path) in files {
        if let Some((name, _)) = path.split_once('/')
            && step(name).is_some_and(|step| (step, *attempt) < newer)
        {
            older.insert((*attempt, name));
        }
    }
    older
}

impl Core {
    /// Removes files that no row speaks of any more, while nobody waits for it. What is left is tried again by retention.
    pub(super) fn remove_soon(self: &Arc<Self>) {
        let core = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(refusal) = core.remove_marked().await {
                tracing::warn!(
                    ?refusal,
                    "files that are given up could not be removed; they are tried again every hour"
                );
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_checkpoint_takes_the_place_of() {
        let files = |of: &[(u32, &str)]| -> Vec<(Attempt, String)> {
            of.iter().map(|(attempt, path)| (Attempt(*attempt), (*path).to_owned())).collect()
        };
        let all = files(&[
            (1, "checkpoint-900/a"),
            (1, "checkpoint-950-rolling/a"),
            (1, "checkpoint-900/sub/b"),
            (1, "checkpoint-1000/a"),
            (1, "checkpoint-2000/half"),
            (2, "checkpoint-1000/a"),
            (2, "checkpoint-950/a"),
            (2, "checkpoint-x/a"),
            (2, "checkpoint-/a"),
            (2, "checkpoint-5"),
        ]);
        let older = |at: i64, attempt: u32| -> Vec<String> {
            let found = before((at, Attempt(attempt)), &all);
            found.into_iter().map(|(attempt, name)| format!("{attempt}/{name}")).collect()
        };
        assert_eq!(older(900, 1), [""; 0]);
        assert_eq!(older(950, 2), ["1/checkpoint-900", "1/checkpoint-950-rolling"]);
        assert_eq!(older(1000, 1), ["1/checkpoint-900", "1/checkpoint-950-rolling", "2/checkpoint-950"]);
        let both = ["1/checkpoint-1000", "1/checkpoint-900", "1/checkpoint-950-rolling", "2/checkpoint-950"];
        assert_eq!(older(1000, 2), both);
    }
}
