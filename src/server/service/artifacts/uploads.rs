//! Chunked uploads: an interrupted client resumes where it stopped.

use std::pin::pin;
use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::AttemptNumber;
use app::domain::time::Millis;
use app::protocol::agents::{ArtifactAck, UploadProgress, UploadResponse};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};

use crate::files::artifacts::{StoredFile, UploadError};
use crate::files::uploads::{PartialUpload, UploadTarget};
use crate::service::artifacts::ArtifactService;
use crate::service::artifacts::{UploadAnnouncement, upload_error};
use crate::service::attempt_ref::AttemptRef;
use crate::service::error::{InvalidInput, ServiceError, UploadRejection};
use crate::service::unit_of_work::Caller;
use crate::store::artifacts::StoredArtifact;
use crate::text::is_plain_path;

/// The size of a write.
const WRITE_BLOCK_BYTES: usize = 1 << 20;
/// An upload without a new chunk for this time is dropped.
const ABANDONED_AFTER: Millis = Millis::from_secs(86_400);

/// The size and SHA-256 of the announced file.
#[derive(Debug, Clone)]
pub struct ExpectedFile {
    pub size: Option<u64>,
    /// In hex.
    pub sha256: Option<String>,
}

impl ArtifactService {
    /// Returns how much of a file was received.
    pub async fn upload_progress(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
        path: String,
        expected: ExpectedFile,
    ) -> Result<UploadProgress, ServiceError> {
        let attempt = self.agents.check_attempt(attempt_ref).await?;
        let target = self.upload_target(attempt_ref, attempt, path, expected)?;
        let received = match self.find_stored(&target).await? {
            Some(artifact) => artifact.size,
            None => self.uploads.received_bytes(&target).await?,
        };
        Ok(UploadProgress { received })
    }

    /// Appends a chunk of a file at `offset`. After the last one the file is stored, if it is as announced.
    pub async fn put_chunk<E: std::fmt::Display>(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        announcement: UploadAnnouncement,
        (offset, size): (u64, Option<u64>),
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<UploadResponse, ServiceError> {
        let attempt = self.agents.check_attempt(&attempt_ref).await?;
        let expected = ExpectedFile { size, sha256: announcement.sha256.clone() };
        let target = self.upload_target(&attempt_ref, attempt, announcement.path.clone(), expected)?;
        if let Some(stored) = self.find_stored(&target).await? {
            return Ok(UploadResponse::Stored(artifact_ack(stored)));
        }
        self.context.check_attempt_disk_space(&attempt_ref.job, attempt).await?;
        self.check_upload(&attempt_ref.job, (attempt, &target.path), target.size).await?;
        let appended = self.append_chunk(&target, offset, body).await;
        if !matches!(appended, Ok(received) if received == target.size)
            // The same file was sent by another request, and was stored meanwhile.
            && let Some(stored) = self.find_stored(&target).await?
        {
            return Ok(UploadResponse::Stored(artifact_ack(stored)));
        }
        match appended? {
            received if received < target.size => Ok(UploadResponse::Received(UploadProgress { received })),
            _ => self.finalize_upload(caller, attempt_ref, announcement, target).await.map(UploadResponse::Stored),
        }
    }

    /// Appends a chunk; returns how much of the file was received.
    async fn append_chunk<E: std::fmt::Display>(
        &self,
        target: &UploadTarget,
        offset: u64,
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<u64, ServiceError> {
        let received = self.uploads.received_bytes(target).await?;
        if offset > received {
            return Err(ServiceError::UploadGap { received });
        }
        let written = self.write_body(target, offset, body).await;
        // A broken chunk need not be sent again as a whole.
        let received = self.uploads.sync(target).await?;
        written.map_err(|error| error.with_stored_bytes(received))?;
        Ok(received)
    }

    async fn write_body<E: std::fmt::Display>(
        &self,
        target: &UploadTarget,
        mut offset: u64,
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<(), ServiceError> {
        let (mut body, mut block) = (pin!(body), BytesMut::new());
        loop {
            let (has_more, interruption) = match body.next().await {
                Some(Ok(bytes)) => {
                    block.extend_from_slice(&bytes);
                    (true, None)
                }
                Some(Err(error)) => (false, Some(UploadRejection::Interrupted(error.to_string()))),
                None => (false, None),
            };
            if offset + block.len() as u64 > target.size {
                let rejection = UploadRejection::MoreThanAnnounced { announced: target.size };
                return Err(ServiceError::Upload { rejection, stored_bytes: 0 });
            }
            if block.len() >= WRITE_BLOCK_BYTES || !has_more {
                self.context.check_running_disk_space()?;
                let full_block = block.split().freeze();
                let end = offset + full_block.len() as u64;
                let received = self.uploads.append(target, offset, full_block).await?;
                if received < offset {
                    // The upload was dropped meanwhile.
                    return Err(ServiceError::UploadGap { received });
                }
                offset = end;
            }
            match interruption {
                Some(rejection) => return Err(ServiceError::Upload { rejection, stored_bytes: 0 }),
                None if has_more => {}
                None => return Ok(()),
            }
        }
    }

    /// Stores a file whose bytes are all received. The work continues if the client disconnects.
    async fn finalize_upload(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        announcement: UploadAnnouncement,
        target: UploadTarget,
    ) -> Result<ArtifactAck, ServiceError> {
        let (artifacts, key) = (Arc::clone(self), target.clone());
        let store = async move {
            let stored = artifacts.store_upload(caller, attempt_ref, announcement, &target).await;
            // The bytes of a file that does not match, or was rejected, are of no use and are dropped.
            if matches!(
                stored,
                Ok(_)
                    | Err(ServiceError::Upload { .. }
                        | ServiceError::JobTransition(_)
                        | ServiceError::Invalid(_)
                        | ServiceError::LimitReached(_))
            ) {
                artifacts.uploads.discard(&target).await?;
            }
            stored
        };
        self.finalizer.run_once(&key, store).await
    }

    async fn store_upload(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
        announcement: UploadAnnouncement,
        target: &UploadTarget,
    ) -> Result<ArtifactAck, ServiceError> {
        if let Some(stored) = self.find_stored(target).await? {
            return Ok(artifact_ack(stored));
        }
        let (size, sha256) = (self.uploads.received_bytes(target).await?, self.uploads.digest(target).await?);
        if (size, &sha256) != (target.size, &target.sha256) {
            return Err(upload_error(UploadError::DigestMismatch { announced: target.sha256.clone(), found: sha256 }));
        }
        self.agents.check_attempt(&attempt_ref).await?;
        let artifact_key = (&target.job, target.attempt, target.path.as_str());
        self.files.store_local_file(artifact_key, &self.uploads.path(target)).await.map_err(upload_error)?;
        self.record_artifact(caller, attempt_ref, target.attempt, announcement, StoredFile { size, sha256 }).await
    }

    /// Returns the file if it is stored already.
    async fn find_stored(&self, target: &UploadTarget) -> Result<Option<StoredArtifact>, ServiceError> {
        let artifact = self.context.read().await?.artifact(&target.job, &target.path).await?;
        let is_target = |artifact: &StoredArtifact| {
            (artifact.attempt, artifact.size, &artifact.sha256) == (target.attempt, target.size, &target.sha256)
        };
        Ok(artifact.filter(is_target))
    }

    fn upload_target(
        &self,
        attempt_ref: &AttemptRef,
        attempt: AttemptNumber,
        path: String,
        expected: ExpectedFile,
    ) -> Result<UploadTarget, ServiceError> {
        if !is_plain_path(&path) {
            return Err(InvalidInput::Path(path.chars().take(80).collect()).into());
        }
        let missing_size = InvalidInput::OutOfRange { field: "size", allowed: AllowedValues::FileSize };
        let size = expected.size.ok_or(missing_size)?;
        let is_digest = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let missing_digest = InvalidInput::OutOfRange { field: "sha256", allowed: AllowedValues::FileDigest };
        let sha256 = expected.sha256.filter(is_digest).ok_or(missing_digest)?;
        let limit = self.context.policy.artifact_limit;
        if size > limit {
            return Err(ServiceError::Upload { rejection: UploadRejection::TooLarge { limit }, stored_bytes: 0 });
        }
        Ok(UploadTarget { job: attempt_ref.job.clone(), attempt, path, size, sha256: sha256.to_ascii_lowercase() })
    }

    /// Drops uploads whose attempt is over, or that got no chunk for a day; returns their number.
    pub async fn sweep_uploads(&self) -> Result<u64, ServiceError> {
        let mut dropped = 0;
        for partial in self.uploads.list_partial().await? {
            if self.context.now() - partial.modified_at > ABANDONED_AFTER || self.is_abandoned(&partial).await? {
                self.uploads.remove_partial(partial).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    async fn is_abandoned(&self, partial: &PartialUpload) -> Result<bool, ServiceError> {
        let job = self.context.read().await?.job(&partial.job).await?;
        Ok(job.is_none_or(|job| job.has_ended() || job.attempt != partial.attempt))
    }
}

fn artifact_ack(StoredArtifact { path, size, sha256, .. }: StoredArtifact) -> ArtifactAck {
    ArtifactAck { path, size_bytes: size, sha256 }
}
