//! Pruning for the policy that keeps only the last checkpoint: a newer complete one replaces the earlier ones, unless an
//! unfinished job starts from them.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{CheckpointRef, CheckpointUploads, Job, StartPoint};
use app::protocol::artifacts::checkpoints::checkpoint_step;

use crate::service::artifacts::ArtifactService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::UnitOfWork;
use crate::store::cache::state::FleetState;

/// The step of a checkpoint as the database stores it, from the name of its directory.
pub fn stored_step(name: &str) -> Option<i64> {
    checkpoint_step(name).and_then(|step| i64::try_from(step).ok())
}

/// Marks the checkpoints that this one replaces. Returns whether there are files to remove after the commit.
pub async fn prune_superseded(
    unit: &mut UnitOfWork<'_>,
    job: &Job,
    newer: (i64, AttemptNumber),
) -> Result<bool, ServiceError> {
    if job.spec.checkpoints != CheckpointUploads::Last {
        return Ok(false);
    }
    let files = unit.tx.checkpoint_files(&job.id).await?;
    let older = superseded_dirs(newer, &files);
    let starts = start_points(unit, &job.id).await?;
    let unused =
        older.into_iter().filter(|(attempt, directory)| !starts.contains(&(*attempt, (*directory).to_owned())));
    let mut is_any_removed = false;
    for (attempt, directory) in unused {
        unit.tx.remove_checkpoint(&job.id, attempt, directory).await?;
        is_any_removed = true;
    }
    Ok(is_any_removed)
}

/// The checkpoints of a job from which other jobs start that have not ended.
async fn start_points(
    unit: &mut UnitOfWork<'_>,
    job: &JobId,
) -> Result<BTreeSet<(AttemptNumber, String)>, ServiceError> {
    let job = job.clone();
    let start_point = move |fork: &Arc<Job>| match &fork.spec.start {
        StartPoint::Checkpoint(CheckpointRef { job: from, attempt, name }) if *from == job => {
            Some((*attempt, name.clone()))
        }
        _ => None,
    };
    Ok(unit.tx.with_state(move |fleet_state: &FleetState| fleet_state.jobs().filter_map(start_point).collect()).await?)
}

/// The directories that nothing resumes from once this checkpoint is complete: those of an earlier step, or of the same
/// step and an earlier attempt, including partial ones. Directories of a later step stay, from whichever attempt.
fn superseded_dirs(newer: (i64, AttemptNumber), files: &[(AttemptNumber, String)]) -> BTreeSet<(AttemptNumber, &str)> {
    let mut older = BTreeSet::new();
    for (attempt, path) in files {
        if let Some((name, _)) = path.split_once('/')
            && stored_step(name).is_some_and(|step| (step, *attempt) < newer)
        {
            older.insert((*attempt, name));
        }
    }
    older
}

impl ArtifactService {
    /// Removes unreferenced files in the background. Retention retries what fails.
    pub(in crate::service) fn spawn_removal(self: &Arc<Self>) {
        let jobs = Arc::clone(&self.jobs);
        tokio::spawn(async move {
            if let Err(error) = jobs.remove_marked_files().await {
                tracing::warn!(?error, "checkpoint pruning: failed to remove files; retrying every hour");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_checkpoint_replaces_earlier_ones() {
        let files = |paths: &[(u32, &str)]| -> Vec<(AttemptNumber, String)> {
            paths.iter().map(|(attempt, path)| (AttemptNumber(*attempt), (*path).to_owned())).collect()
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
        let older = |step: i64, attempt: u32| -> Vec<String> {
            let found = superseded_dirs((step, AttemptNumber(attempt)), &all);
            found.into_iter().map(|(attempt, name)| format!("{attempt}/{name}")).collect()
        };
        assert_eq!(older(900, 1), [""; 0]);
        assert_eq!(older(950, 2), ["1/checkpoint-900", "1/checkpoint-950-rolling"]);
        assert_eq!(older(1000, 1), ["1/checkpoint-900", "1/checkpoint-950-rolling", "2/checkpoint-950"]);
        let both = ["1/checkpoint-1000", "1/checkpoint-900", "1/checkpoint-950-rolling", "2/checkpoint-950"];
        assert_eq!(older(1000, 2), both);
    }
}
