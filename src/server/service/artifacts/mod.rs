//! Artifacts: uploads by workers, downloads by users.

pub mod archive;
pub(super) mod checkpoint_pruning;
pub mod checkpoints;
pub mod file_usage;
pub mod upload_finalizer;
pub mod uploads;

use std::ops::Range;
use std::sync::Arc;

use app::domain::allowed_values::LimitedItems;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::CheckpointUploads;
use app::protocol::agents::ArtifactAck;
use app::protocol::artifacts::checkpoints::is_checkpoint_path;
use app::protocol::status::ArtifactKind;
use app::protocol::topic::Topic;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};

use self::file_usage::FileUsageCache;
use self::upload_finalizer::UploadFinalizer;
use super::error::{InvalidInput, ResourceLimit, ServiceError, UploadRejection};
use super::unit_of_work::Caller;
use crate::files::artifacts::ArtifactStore;
use crate::files::artifacts::{StoredFile, UploadError};
use crate::files::uploads::UploadStore;
use crate::service::ServiceContext;
use crate::service::agents::AgentService;
use crate::service::attempt_ref::AttemptRef;
use crate::service::jobs::JobService;
use crate::store::artifacts::StoredArtifact;
use crate::store::jobs::retention::RemovedFiles;
use crate::text::is_plain_path;

/// What a worker announces about a file.
#[derive(Debug, Clone)]
pub struct UploadAnnouncement {
    pub path: String,
    pub kind: ArtifactKind,
    /// SHA-256 in hex, if the sender computed it.
    pub sha256: Option<String>,
    /// Size in bytes, as announced.
    pub size: u64,
}

/// Artifacts, checkpoints and uploads.
pub struct ArtifactService {
    pub files: Arc<ArtifactStore>,
    pub(super) uploads: Arc<UploadStore>,
    pub(super) finalizer: UploadFinalizer,
    pub(super) file_usage: Arc<FileUsageCache>,
    pub(super) agents: Arc<AgentService>,
    pub(super) jobs: Arc<JobService>,
    pub(super) context: Arc<ServiceContext>,
}

impl ArtifactService {
    /// Stores an uploaded file.
    pub async fn put_artifact<E: std::fmt::Display>(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        announcement: UploadAnnouncement,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin + Send,
    ) -> Result<ArtifactAck, ServiceError> {
        if !is_plain_path(&announcement.path) {
            return Err(InvalidInput::Path(announcement.path.chars().take(80).collect()).into());
        }
        let attempt = self.agents.check_attempt(&attempt_ref).await?;
        self.context.check_attempt_disk_space(&attempt_ref.job, attempt).await?;
        self.check_upload(&attempt_ref.job, (attempt, &announcement.path), announcement.size).await?;
        let artifact_key = (&attempt_ref.job, attempt, announcement.path.as_str());
        let limit = self.context.policy.artifact_limit;
        // A file of many gigabytes may use up what was free at its start.
        let body = body.map(|bytes| match self.context.check_running_disk_space() {
            Ok(()) => bytes.map_err(|error| error.to_string()),
            Err(_) => Err("the server's disk is full".to_owned()),
        });
        let received = self.files.receive(artifact_key, body, announcement.sha256.as_deref(), limit).await;
        let received = match received {
            Err(UploadError::Interrupted(_)) => {
                self.context.check_running_disk_space()?;
                received.map_err(upload_error)?
            }
            other => other.map_err(upload_error)?,
        };
        // The client may disconnect before the file is recorded or removed.
        let artifacts = Arc::clone(self);
        let recorded = tokio::spawn(async move {
            // The upload may have taken hours. A file from which a newer attempt resumes is not replaced.
            if let Err(error) = artifacts.agents.check_attempt(&attempt_ref).await {
                received.discard().await;
                return Err(error);
            }
            let stored = received.commit().await.map_err(upload_error)?;
            artifacts.record_artifact(caller, attempt_ref, attempt, announcement, stored).await
        });
        recorded.await.unwrap_or_else(|error| Err(ServiceError::FilesUnavailable(error.to_string())))
    }

    /// Fails if the job does not want this file, or if its size would exceed the limit of its job or user.
    pub(super) async fn check_upload(
        &self,
        job: &JobId,
        (attempt, path): (AttemptNumber, &str),
        new: u64,
    ) -> Result<(), ServiceError> {
        let limits = self.context.policy.usage_limits;
        let mut tx = self.context.read().await?;
        let stored_job = tx.job(job).await?.ok_or_else(|| ServiceError::JobNotFound(job.clone()))?;
        if stored_job.spec.checkpoints == CheckpointUploads::None && is_checkpoint_path(path) {
            return Err(ServiceError::Upload { rejection: UploadRejection::Checkpoint, stored_bytes: 0 });
        }
        if tx.other_artifact_bytes(job, (attempt, path)).await?.saturating_add(new) > limits.file_bytes_per_job {
            return Err(ServiceError::LimitReached(ResourceLimit::FilesOfJob { max: limits.file_bytes_per_job }));
        }
        let owner = stored_job.submitted_by.clone();
        let is_within_limit = |used: u64| used.saturating_add(new) <= limits.file_bytes_per_user;
        if self.file_usage.get(&owner, self.context.now()).is_some_and(is_within_limit) {
            return Ok(());
        }
        let used = self.file_usage.insert(&owner, tx.user_artifact_bytes(&owner).await?, self.context.now());
        if !is_within_limit(used) {
            return Err(ServiceError::LimitReached(ResourceLimit::FilesOfUser { max: limits.file_bytes_per_user }));
        }
        Ok(())
    }

    /// Records a stored file if its attempt still counts. If not, removes the file.
    pub async fn record_artifact(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        attempt: AttemptNumber,
        announcement: UploadAnnouncement,
        StoredFile { size, sha256 }: StoredFile,
    ) -> Result<ArtifactAck, ServiceError> {
        let kind = announcement.kind.as_str().to_owned();
        let artifact =
            StoredArtifact { path: announcement.path, attempt, kind, size, sha256, created_at: self.context.now() };
        let input = Arc::new((attempt_ref, artifact));
        let original_input = Arc::clone(&input);
        let recorded = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (attempt_ref, artifact) = &*input;
                let job = unit.job(&attempt_ref.job).await?;
                job.check_current_attempt(&attempt_ref.worker, artifact.attempt)?;
                let file = RemovedFiles::Artifact { attempt: artifact.attempt, path: artifact.path.clone() };
                if unit.tx.is_marked(&job.id, &file).await? {
                    return Err(ServiceError::FilesUnavailable(format!(
                        "a previous {} is being removed",
                        artifact.path
                    )));
                }
                let limit = unit.context.policy.max_artifacts;
                if unit.tx.has_other_artifacts(&job.id, (artifact.attempt, &artifact.path), limit).await? {
                    return Err(InvalidInput::TooMuch { items: LimitedItems::JobFiles, limit }.into());
                }
                // Several uploads may have been recorded at the same time.
                let max = unit.context.policy.usage_limits.file_bytes_per_job;
                let others = unit.tx.other_artifact_bytes(&job.id, (artifact.attempt, &artifact.path)).await?;
                if others.saturating_add(artifact.size) > max {
                    return Err(ServiceError::LimitReached(ResourceLimit::FilesOfJob { max }));
                }
                unit.renew_fencing_delay(&job).await?;
                unit.tx.put_artifact(&job.id, artifact).await?;
                unit.notify(Topic::Job(job.id));
                let StoredArtifact { path, size, sha256, .. } = artifact.clone();
                Ok((job.submitted_by, ArtifactAck { path, size_bytes: size, sha256 }))
            })
        });
        let recorded = recorded.await;
        // If the database does not answer, it may still have recorded the file.
        if recorded.as_ref().is_err_and(|error| !matches!(error, ServiceError::Store(_))) {
            let (AttemptRef { job, .. }, StoredArtifact { path, .. }) = &*original_input;
            self.remove_unrecorded(job.clone(), attempt, path.clone()).await;
        }
        let (owner, ack) = recorded?;
        self.file_usage.add_bytes(&owner, ack.size_bytes);
        Ok(ack)
    }

    /// Removes a file that was not recorded.
    async fn remove_unrecorded(self: &Arc<Self>, job: JobId, attempt: AttemptNumber, path: String) {
        let file = Arc::new((job, path));
        let removal = self.context.change(Caller::system(), move |unit| {
            let file = Arc::clone(&file);
            Box::pin(async move {
                let (job, path) = &*file;
                unit.tx.remove_artifact(job, attempt, path).await?;
                unit.notify(Topic::Job(job.clone()));
                Ok(())
            })
        });
        match removal.await {
            Ok(()) => self.spawn_removal(),
            Err(error) => tracing::warn!(?error, "artifacts: failed to remove a rejected file"),
        }
    }

    /// Finds a job's file: the one of the newest attempt that has this path.
    pub async fn find_artifact(&self, job: &JobId, path: &str) -> Result<StoredArtifact, ServiceError> {
        let artifact = self.context.read().await?.artifact(job, path).await?;
        artifact.ok_or_else(|| ServiceError::ArtifactNotFound(path.to_owned()))
    }

    /// Reads these bytes of a job's file; the others are skipped.
    pub async fn read_artifact(
        &self,
        job: &JobId,
        artifact: &StoredArtifact,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, object_store::Result<Bytes>>, ServiceError> {
        let artifact_key = (job, artifact.attempt, artifact.path.as_str());
        let bytes = self.files.get_range(artifact_key, range).await;
        bytes.map_err(|error| ServiceError::FilesUnavailable(error.to_string()))
    }
}

pub(super) fn upload_error(error: UploadError) -> ServiceError {
    let rejection = match error {
        UploadError::Store(error) => return ServiceError::FilesUnavailable(error.to_string()),
        UploadError::TooLarge { limit } => UploadRejection::TooLarge { limit },
        UploadError::Interrupted(reason) => UploadRejection::Interrupted(reason),
        UploadError::DigestMismatch { announced, found } => UploadRejection::DigestMismatch { announced, found },
    };
    ServiceError::Upload { rejection, stored_bytes: 0 }
}
