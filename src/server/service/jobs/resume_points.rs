//! The checkpoints from which a job can resume: its own, and those of the jobs that it retries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{Job, StartPoint};
use app::protocol::agents::CheckpointFile;
use app::protocol::artifacts::ResumePointView;

use crate::service::error::ServiceError;
use crate::store::Tx;
use crate::store::artifacts::checkpoints::StoredCheckpoint;

/// The maximum number of jobs to follow in a chain of retries.
const MAX_RETRY_CHAIN: usize = 100;

/// A checkpoint and its job and attempt.
pub struct FoundCheckpoint {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub name: String,
    pub files: Vec<CheckpointFile>,
}

/// Returns where the next attempt of a job would resume.
pub async fn resume_point(tx: &mut dyn Tx, job: &Job) -> Result<Option<ResumePointView>, ServiceError> {
    let found = newest_checkpoint(tx, job, AttemptNumber(job.attempt.0 + 1)).await?;
    Ok(found.map(|FoundCheckpoint { job, attempt, name, .. }| ResumePointView { job_id: job, attempt, name }))
}

/// Returns the checkpoints that the owner of a job can resume or fork it from, newest first, at most `max`. Each name is
/// listed once.
pub async fn resumable_checkpoints(
    tx: &mut dyn Tx,
    job: &Job,
    max: usize,
) -> Result<Vec<ResumePointView>, ServiceError> {
    let mut points = Vec::new();
    for (job, checkpoint) in candidate_checkpoints(tx, job, job.attempt.next()).await? {
        if points.len() == max {
            break;
        }
        if points.iter().any(|point: &ResumePointView| point.name == checkpoint.name) {
            continue;
        }
        let found = complete_checkpoint(tx, job, checkpoint).await?;
        points.extend(found.map(|FoundCheckpoint { job, attempt, name, .. }| ResumePointView {
            job_id: job,
            attempt,
            name,
        }));
    }
    Ok(points)
}

/// Returns the checkpoint with the highest step that an attempt of this job may resume from.
pub async fn newest_checkpoint(
    tx: &mut dyn Tx,
    job: &Job,
    before: AttemptNumber,
) -> Result<Option<FoundCheckpoint>, ServiceError> {
    for (job, checkpoint) in candidate_checkpoints(tx, job, before).await? {
        if let Some(found) = complete_checkpoint(tx, job, checkpoint).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the checkpoints of the job's earlier attempts and of the jobs that it retries, highest step first. The chain
/// ends at a job that started from scratch or from a named checkpoint, and at another user's job.
async fn candidate_checkpoints(
    tx: &mut dyn Tx,
    job: &Job,
    before: AttemptNumber,
) -> Result<Vec<(JobId, StoredCheckpoint)>, ServiceError> {
    let earlier = tx.checkpoints(&job.id).await?.into_iter().filter(|checkpoint| checkpoint.attempt < before);
    let mut candidates: Vec<(JobId, StoredCheckpoint)> =
        earlier.map(|checkpoint| (job.id.clone(), checkpoint)).collect();
    let (mut start, mut next) = (job.spec.start.clone(), job.retry_of.clone());
    for _ in 0..MAX_RETRY_CHAIN {
        match &start {
            StartPoint::NewestCheckpoint => {}
            StartPoint::Scratch => break,
            StartPoint::Checkpoint(saved) => {
                let is_saved = |checkpoint: &StoredCheckpoint| {
                    checkpoint.attempt == saved.attempt && checkpoint.name == saved.name
                };
                let checkpoints = tx.checkpoints(&saved.job).await?.into_iter().filter(is_saved);
                candidates.extend(checkpoints.map(|checkpoint| (saved.job.clone(), checkpoint)));
                break;
            }
        }
        let Some(id) = next else { break };
        let Some(retried) = tx.job(&id).await?.filter(|retried| retried.submitted_by == job.submitted_by) else {
            break;
        };
        candidates.extend(tx.checkpoints(&id).await?.into_iter().map(|checkpoint| (id.clone(), checkpoint)));
        (start, next) = (retried.spec.start, retried.retry_of);
    }
    // For one step, the job's own checkpoint comes first, then those of the jobs it retries; the sort is stable.
    candidates.sort_by_key(|(_, checkpoint)| Reverse(checkpoint.step));
    Ok(candidates)
}

/// Returns a checkpoint if all its files are stored.
async fn complete_checkpoint(
    tx: &mut dyn Tx,
    job: JobId,
    checkpoint: StoredCheckpoint,
) -> Result<Option<FoundCheckpoint>, ServiceError> {
    let files: Vec<CheckpointFile> = serde_json::from_str(&checkpoint.files).unwrap_or_default();
    let is_complete = !files.is_empty() && first_missing_file(tx, &job, checkpoint.attempt, &files).await?.is_none();
    Ok(is_complete.then_some(FoundCheckpoint { job, attempt: checkpoint.attempt, name: checkpoint.name, files }))
}

/// Returns the first of these files that the attempt has not uploaded as described.
pub async fn first_missing_file(
    tx: &mut dyn Tx,
    job: &JobId,
    attempt: AttemptNumber,
    files: &[CheckpointFile],
) -> Result<Option<String>, ServiceError> {
    let uploaded = tx.attempt_artifacts(job, attempt).await?;
    let uploaded: BTreeMap<_, _> =
        uploaded.iter().map(|uploaded| (&uploaded.path, (uploaded.size, uploaded.sha256.as_str()))).collect();
    let is_stored = |file: &&CheckpointFile| {
        let digest = file.sha256.to_ascii_lowercase();
        uploaded.get(&file.path) == Some(&(file.size_bytes, digest.as_str()))
    };
    Ok(files.iter().find(|file| !is_stored(file)).map(|file| file.path.clone()))
}
