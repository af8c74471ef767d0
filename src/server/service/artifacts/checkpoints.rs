//! Checkpoints: an attempt uploads them, and a later one on another host resumes from the newest.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::JobState;
use app::protocol::agents::{CheckpointFile, ResumeCheckpoint};
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use app::protocol::topic::Topic;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use super::checkpoint_pruning::{self, prune_superseded};
use crate::files::artifacts::ArtifactStore;
use crate::service::artifacts::ArtifactService;
use crate::service::attempt_ref::AttemptRef;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::jobs::resume_points::{FoundCheckpoint, first_missing_file, newest_checkpoint};
use crate::service::unit_of_work::Caller;
use crate::store::artifacts::checkpoints::StoredCheckpoint;
use crate::text::is_plain_path;

/// The maximum number of files of one checkpoint.
pub const MAX_FILES: usize = 4_096;

/// A file of an earlier checkpoint.
pub struct ResumeFile {
    /// Its path, size and hash.
    pub file: CheckpointFile,
    location: (JobId, AttemptNumber),
    artifacts: Arc<ArtifactStore>,
}

impl ArtifactService {
    /// Records that all files of a checkpoint were uploaded: a later attempt may resume from it.
    pub async fn record_checkpoint(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        completed: CompletedCheckpoint,
    ) -> Result<(), ServiceError> {
        let step = parse_step(&completed)?;
        let input = Arc::new((attempt_ref, completed, step));
        let has_removals = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (attempt_ref, completed, step) = &*input;
                let job = unit.job(&attempt_ref.job).await?;
                let attempt = attempt_ref.attempt.unwrap_or(job.attempt);
                job.check_current_attempt(&attempt_ref.worker, attempt)?;
                unit.renew_fencing_delay(&job).await?;
                if let Some(missing) = first_missing_file(unit.tx, &job.id, attempt, &completed.files).await? {
                    return Err(ServiceError::CheckpointIncomplete { path: missing });
                }
                let newest = unit.tx.newest_checkpoints(std::slice::from_ref(&job.id)).await?.into_iter().next();
                let previous = newest.filter(|newest| newest.attempt == attempt && newest.step < *step);
                let started = if let JobState::Running { since, .. } = &job.state { Some(*since) } else { None };
                let previous = previous.map(|newest| newest.created_at).or(started);
                let checkpoint = StoredCheckpoint {
                    attempt,
                    name: completed.name.clone(),
                    step: *step,
                    files: serde_json::to_string(&completed.files).expect("fields that can be serialized"),
                    created_at: unit.now,
                    interval: previous.map(|previous| unit.now - previous),
                };
                unit.tx.put_checkpoint(&job.id, &checkpoint).await?;
                unit.stop_after_checkpoint(&job).await?;
                let has_removals = prune_superseded(unit, &job, (*step, attempt)).await?;
                unit.notify(Topic::Job(job.id));
                Ok(has_removals)
            })
        });
        if has_removals.await? {
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
        let not_found = || ServiceError::ArtifactNotFound(path.chars().take(80).collect());
        let FoundCheckpoint { job, attempt, files, .. } =
            self.find_resume_checkpoint(attempt_ref).await?.ok_or_else(not_found)?;
        let file = files.into_iter().find(|file| file.path == path).ok_or_else(not_found)?;
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

/// Validates the step of a checkpoint.
fn parse_step(checkpoint: &CompletedCheckpoint) -> Result<i64, InvalidInput> {
    let invalid_name = InvalidInput::OutOfRange { field: "name", allowed: AllowedValues::CheckpointName };
    let step = checkpoint_pruning::stored_step(&checkpoint.name).ok_or(invalid_name)?;
    if checkpoint.files.len() > MAX_FILES {
        return Err(InvalidInput::TooMuch { items: LimitedItems::CheckpointFiles, limit: MAX_FILES as u64 });
    }
    let mut paths = HashSet::new();
    let is_below = |path: &str| path.strip_prefix(&checkpoint.name).is_some_and(|rest| rest.starts_with('/'));
    let mut is_invalid = |path: &'_ str| !is_plain_path(path) || !is_below(path) || !paths.insert(path.to_owned());
    if let Some(invalid) = checkpoint.files.iter().find(|file| is_invalid(&file.path)) {
        return Err(InvalidInput::Path(invalid.path.chars().take(80).collect()));
    }
    if checkpoint.files.is_empty() {
        return Err(InvalidInput::OutOfRange { field: "files", allowed: AllowedValues::CheckpointFiles });
    }
    Ok(step)
}
