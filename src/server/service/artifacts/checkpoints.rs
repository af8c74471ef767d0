//! Checkpoints: an attempt uploads them, and a later one on another host resumes from the newest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::{AttemptReport, Job, StartPoint};
use app::protocol::agents::{CheckpointFile, ResumeCheckpoint};
use app::protocol::artifacts::ResumePointView;
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use app::protocol::topic::Topic;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::checkpoint_pruning::{self, prune_superseded};
use crate::files::artifacts::ArtifactStore;
use crate::service::agents::attempt_reports::AttemptRef;
use crate::service::artifacts::ArtifactService;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::Caller;
use crate::store::Tx;
use crate::store::artifacts::checkpoints::StoredCheckpoint;
use crate::text::is_plain_path;
use app::domain::allowed_values::{AllowedValues, LimitedItems};

/// The maximum number of files of one checkpoint.
pub const MAX_FILES: usize = 4_096;
/// The maximum number of jobs to follow in a chain of retries.
const MAX_RETRY_CHAIN: usize = 100;

/// A file of an earlier checkpoint.
pub struct ResumeFile {
    /// Its path, size and hash.
    pub file: CheckpointFile,
    location: (JobId, AttemptNumber),
    artifacts: Arc<ArtifactStore>,
}

/// A checkpoint and its job and attempt.
struct FoundCheckpoint {
    job: JobId,
    attempt: AttemptNumber,
    name: String,
    files: Vec<CheckpointFile>,
}

impl ArtifactService {
    /// Records that all files of a checkpoint were uploaded: a later attempt may resume from it.
    pub async fn record_checkpoint(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        whole: CompletedCheckpoint,
    ) -> Result<(), ServiceError> {
        let step = parse_step(&whole)?;
        let input = Arc::new((attempt_ref, whole, step));
        let gives_up = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (subject, whole, step) = &*input;
                let job = unit.job(&subject.job).await?;
                let attempt = subject.attempt.unwrap_or(job.attempt);
                job.clone().reported(unit.now, &subject.worker, attempt, AttemptReport::Running)?;
                unit.renew_hold(&job).await?;
                if let Some(missing) = first_missing_file(unit.tx, &job.id, attempt, &whole.files).await? {
                    return Err(ServiceError::CheckpointIncomplete { path: missing });
                }
                let checkpoint = StoredCheckpoint {
                    attempt,
                    name: whole.name.clone(),
                    step: *step,
                    files: serde_json::to_string(&whole.files).expect("fields that can be serialized"),
                    created_at: unit.now,
                };
                unit.tx.put_checkpoint(&job.id, &checkpoint).await?;
                let gives_up = prune_superseded(unit, &job, (*step, attempt)).await?;
                unit.notify(Topic::Job(job.id));
                Ok(gives_up)
            })
        });
        if gives_up.await? {
            self.spawn_removal();
        }
        Ok(())
    }

    /// Returns the checkpoint that an attempt may resume from.
    pub async fn resume_checkpoint(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
    ) -> Result<ResumeCheckpoint, ServiceError> {
        let found = self.find_resume_checkpoint(attempt_ref).await?;
        Ok(found.map_or_else(ResumeCheckpoint::default, |FoundCheckpoint { attempt, name, files, .. }| {
            ResumeCheckpoint { attempt: Some(attempt), name, files }
        }))
    }

    /// Returns a file of that checkpoint.
    pub async fn resume_file(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
        path: &str,
    ) -> Result<ResumeFile, ServiceError> {
        let none = || ServiceError::ArtifactNotFound(path.chars().take(80).collect());
        let FoundCheckpoint { job, attempt, files, .. } =
            self.find_resume_checkpoint(attempt_ref).await?.ok_or_else(none)?;
        let file = files.into_iter().find(|file| file.path == path).ok_or_else(none)?;
        Ok(ResumeFile { file, location: (job, attempt), artifacts: Arc::clone(&self.files) })
    }

    async fn find_resume_checkpoint(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
    ) -> Result<Option<FoundCheckpoint>, ServiceError> {
        let attempt = self.agents.check_attempt(attempt_ref).await?;
        let mut tx = self.context.read().await?;
        let job = tx.job(&attempt_ref.job).await?.ok_or_else(|| ServiceError::JobNotFound(attempt_ref.job.clone()))?;
        newest_checkpoint(&mut *tx, &job, attempt).await
    }
}

impl ResumeFile {
    /// Reads a range of the file.
    pub async fn bytes(
        &self,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, object_store::Result<Bytes>>, ServiceError> {
        let (job, attempt) = &self.location;
        let bytes = self.artifacts.get_range((job, *attempt, &self.file.path), range).await;
        bytes.map_err(|error| match error {
            // A backup may have excluded the file. A retry does not help.
            object_store::Error::NotFound { .. } => ServiceError::ArtifactNotFound(self.file.path.clone()),
            error => ServiceError::FilesUnavailable(error.to_string()),
        })
    }
}

/// Returns where the next attempt of a job would resume.
pub async fn resume_point(tx: &mut dyn Tx, job: &Job) -> Result<Option<ResumePointView>, ServiceError> {
    let found = newest_checkpoint(tx, job, AttemptNumber(job.attempt.0 + 1)).await?;
    Ok(found.map(|FoundCheckpoint { job, attempt, name, .. }| ResumePointView { job_id: job, attempt, name }))
}

/// Returns the checkpoints that the owner of an ended job can resume from, newest first, at most `max`. Each name is listed
/// once.
pub async fn resumable_checkpoints(
    tx: &mut dyn Tx,
    ended: &Job,
    max: usize,
) -> Result<Vec<ResumePointView>, ServiceError> {
    let mut points = Vec::new();
    for (job, checkpoint) in known_checkpoints(tx, ended, ended.attempt.next()).await? {
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
async fn newest_checkpoint(
    tx: &mut dyn Tx,
    job: &Job,
    before: AttemptNumber,
) -> Result<Option<FoundCheckpoint>, ServiceError> {
    for (job, checkpoint) in known_checkpoints(tx, job, before).await? {
        if let Some(found) = complete_checkpoint(tx, job, checkpoint).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the checkpoints of the job's earlier attempts and of the jobs that it retries, highest step first. The chain ends at
/// a job that started from scratch or from a named checkpoint, and at another user's job.
async fn known_checkpoints(
    tx: &mut dyn Tx,
    job: &Job,
    before: AttemptNumber,
) -> Result<Vec<(JobId, StoredCheckpoint)>, ServiceError> {
    let own = tx.checkpoints(&job.id).await?.into_iter().filter(|checkpoint| checkpoint.attempt < before);
    let mut found: Vec<(JobId, StoredCheckpoint)> = own.map(|checkpoint| (job.id.clone(), checkpoint)).collect();
    let (mut start, mut next) = (job.spec.start.clone(), job.retry_of.clone());
    for _ in 0..MAX_RETRY_CHAIN {
        match &start {
            StartPoint::NewestCheckpoint => {}
            StartPoint::Scratch => break,
            StartPoint::Checkpoint(saved) => {
                let is_it = |checkpoint: &StoredCheckpoint| {
                    checkpoint.attempt == saved.attempt && checkpoint.name == saved.name
                };
                let made = tx.checkpoints(&saved.job).await?.into_iter().filter(is_it);
                found.extend(made.map(|checkpoint| (saved.job.clone(), checkpoint)));
                break;
            }
        }
        let Some(id) = next else { break };
        let Some(tried) = tx.job(&id).await?.filter(|tried| tried.submitted_by == job.submitted_by) else { break };
        found.extend(tx.checkpoints(&id).await?.into_iter().map(|checkpoint| (id.clone(), checkpoint)));
        (start, next) = (tried.spec.start, tried.retry_of);
    }
    // For one step, the job's own checkpoint comes first, then those of the jobs it retries; the sort is stable.
    found.sort_by_key(|(_, checkpoint)| Reverse(checkpoint.step));
    Ok(found)
}

/// Returns a checkpoint if all its files are stored.
async fn complete_checkpoint(
    tx: &mut dyn Tx,
    job: JobId,
    checkpoint: StoredCheckpoint,
) -> Result<Option<FoundCheckpoint>, ServiceError> {
    let files: Vec<CheckpointFile> = serde_json::from_str(&checkpoint.files).unwrap_or_default();
    let is_whole = !files.is_empty() && first_missing_file(tx, &job, checkpoint.attempt, &files).await?.is_none();
    Ok(is_whole.then_some(FoundCheckpoint { job, attempt: checkpoint.attempt, name: checkpoint.name, files }))
}

/// Returns the first of these files that the attempt has not uploaded as described.
async fn first_missing_file(
    tx: &mut dyn Tx,
    job: &JobId,
    attempt: AttemptNumber,
    files: &[CheckpointFile],
) -> Result<Option<String>, ServiceError> {
    let sent = tx.attempt_artifacts(job, attempt).await?;
    let sent: BTreeMap<_, _> = sent.iter().map(|sent| (&sent.path, (sent.size, sent.sha256.as_str()))).collect();
    let is_there = |file: &&CheckpointFile| {
        let digest = file.sha256.to_ascii_lowercase();
        sent.get(&file.path) == Some(&(file.size_bytes, digest.as_str()))
    };
    Ok(files.iter().find(|file| !is_there(file)).map(|file| file.path.clone()))
}

/// Validates the step of a checkpoint.
fn parse_step(checkpoint: &CompletedCheckpoint) -> Result<i64, InvalidInput> {
    let no_name = InvalidInput::OutOfRange { field: "name", allowed: AllowedValues::CheckpointName };
    let step = checkpoint_pruning::checkpoint_step(&checkpoint.name).ok_or(no_name)?;
    if checkpoint.files.len() > MAX_FILES {
        return Err(InvalidInput::TooMuch { what: LimitedItems::CheckpointFiles, limit: MAX_FILES as u64 });
    }
    let mut seen = HashSet::new();
    let is_below = |path: &str| path.strip_prefix(&checkpoint.name).is_some_and(|rest| rest.starts_with('/'));
    let mut is_odd = |path: &'_ str| !is_plain_path(path) || !is_below(path) || !seen.insert(path.to_owned());
    if let Some(odd) = checkpoint.files.iter().find(|file| is_odd(&file.path)) {
        return Err(InvalidInput::Path(odd.path.chars().take(80).collect()));
    }
    if checkpoint.files.is_empty() {
        return Err(InvalidInput::OutOfRange { field: "files", allowed: AllowedValues::CheckpointFiles });
    }
    Ok(step)
}
