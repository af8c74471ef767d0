//! Uploads one file: small ones in one request, large ones in chunks, so that an interrupted upload can resume.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::threads::run_io;

use futures_util::{TryStreamExt, stream};
use reqwest::Body;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::AttemptRunner;
use crate::worker::api::{ChunkAck, FileUpload, OrchestratorError, retry_until_answered};
use crate::worker::artifacts::{Artifact, nofollow};
use crate::worker::clock;
use crate::worker::files::UploadedFile;

/// Size of a chunk, and of the largest file that is sent in one request, in bytes.
const CHUNK_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum tries for a file that changes during its upload, or whose upload makes no progress.
const MAX_TRIES: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_secs(2);
const READ_BUFFER_BYTES: usize = 256 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum FileUploadError {
    /// The trainer has removed the file.
    #[error("it was deleted from the worker's disk")]
    Vanished,
    /// The file cannot be read, or is no longer a regular file.
    #[error("cannot read it: {0}")]
    Unreadable(io::Error),
    /// The orchestrator rejects it.
    #[error("{0}")]
    Rejected(#[from] OrchestratorError),
}

impl From<io::Error> for FileUploadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Vanished } else { Self::Unreadable(error) }
    }
}

impl AttemptRunner {
    /// Uploads a file as it is now, and records that.
    pub(super) async fn upload_file(&self, artifact: &Artifact) -> Result<(), FileUploadError> {
        let operation = format!("uploading {} of {}", artifact.file.path, self.key());
        let mut tries = 0;
        let (size, sha256) = loop {
            tries += 1;
            let (output, path) = (self.dir.output_dir(), artifact.file.path.clone());
            // Dropped if this task is cancelled.
            let caller_alive = Arc::new(());
            let weak_alive = Arc::downgrade(&caller_alive);
            let compute_digest = move || digest(nofollow::open(&output, &path)?, || weak_alive.strong_count() > 0);
            let (size, sha256) = run_io(compute_digest).await?;
            drop(caller_alive);
            let file = FileUpload { path: &artifact.file.path, kind: artifact.kind, size, sha256: &sha256 };
            let result = if size > CHUNK_BYTES {
                self.upload_chunks(&file, &operation).await
            } else {
                self.upload_in_one_request(&file, &operation).await
            };
            match result {
                Ok(()) => break (size, sha256),
                // Most likely the file was written to between its digest and its upload.
                Err(OrchestratorError::Rejected { .. }) if tries < MAX_TRIES => tokio::time::sleep(RETRY_DELAY).await,
                Err(error) => {
                    self.handle_error(&operation, &error);
                    return Err(error.into());
                }
            }
        };
        let file = UploadedFile { size, sha256, ..artifact.file.clone() };
        self.persisted.record_uploaded(file).await;
        Ok(())
    }

    async fn upload_in_one_request(&self, file: &FileUpload<'_>, operation: &str) -> Result<(), OrchestratorError> {
        let send = async || {
            self.check_unchanged(file).await?;
            self.api.upload_artifact(file, || file_body(&self.dir.output_dir(), file.path, (0, file.size))).await
        };
        retry_until_answered(&self.context.reconnect_signal, operation, send).await.map(drop)
    }

    /// Resumes an upload, also one that an earlier agent began.
    async fn upload_chunks(&self, file: &FileUpload<'_>, operation: &str) -> Result<(), OrchestratorError> {
        let reconnect_signal = &self.context.reconnect_signal;
        let mut offset =
            retry_until_answered(reconnect_signal, operation, async || self.api.fetch_received_bytes(file).await)
                .await?
                .min(file.size);
        let mut stalls = 0;
        while stalls < MAX_TRIES {
            // An empty chunk, if all bytes have arrived but the file is not assembled yet.
            let range = (offset, CHUNK_BYTES.min(file.size - offset));
            let send = async || {
                self.check_unchanged(file).await?;
                self.api.upload_chunk(file, range, || file_body(&self.dir.output_dir(), file.path, range)).await
            };
            let received = match retry_until_answered(reconnect_signal, operation, send).await {
                Ok(ChunkAck { received: None }) => return Ok(()),
                Ok(ChunkAck { received: Some(received) }) => received,
                // The server has less than it reported: its disk was changed.
                Err(OrchestratorError::Conflict { code, durable: Some(received), .. }) if code == "upload_gap" => {
                    received
                }
                Err(error) => return Err(error),
            };
            if received <= offset {
                stalls += 1;
                tokio::time::sleep(RETRY_DELAY).await;
            }
            offset = received.min(file.size);
        }
        Err(OrchestratorError::InvalidResponse(format!(
            "the orchestrator has accepted {offset} of {} bytes, and no more",
            file.size
        )))
    }

    /// A file that has grown or shrunk since its digest would be rejected, or sent forever.
    async fn check_unchanged(&self, file: &FileUpload<'_>) -> Result<(), OrchestratorError> {
        let (output, path) = (self.dir.output_dir(), file.path.to_owned());
        let size = run_io(move || Ok(nofollow::open(&output, &path)?.metadata()?.len())).await.ok();
        if size == Some(file.size) {
            return Ok(());
        }
        Err(OrchestratorError::Rejected { status: 422, detail: "it changes during the upload".to_owned() })
    }
}

/// The length of a file, and its SHA-256 in hex. Stops when `is_wanted` returns false: reading a long sparse file could
/// take days.
pub(super) fn digest(mut file: File, is_wanted: impl Fn() -> bool) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut block = vec![0; READ_BUFFER_BYTES];
    let mut size = 0;
    loop {
        if !is_wanted() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok((size, clock::encode_hex(&hash.finalize())));
        }
        size += count as u64;
        hash.update(&block[..count]);
    }
}

/// A body that reads `length` bytes of the file from `offset` on, as they are sent.
fn file_body(output: &Path, path: &str, (offset, length): (u64, u64)) -> Body {
    let (output, path) = (output.to_owned(), path.to_owned());
    let open = async move {
        let open = move || {
            let mut file = nofollow::open(&output, &path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        let file = tokio::fs::File::from_std(run_io(open).await?).take(length);
        Ok::<_, io::Error>(ReaderStream::with_capacity(file, READ_BUFFER_BYTES))
    };
    Body::wrap_stream(stream::once(open).try_flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_covers_the_whole_file() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let bytes = vec![7; READ_BUFFER_BYTES * 2 + 1];
        std::fs::write(temp.path().join("a"), &bytes)?;
        assert!(digest(nofollow::open(temp.path(), "a")?, || false).is_err());
        let digest = digest(nofollow::open(temp.path(), "a")?, || true)?;
        assert_eq!(digest, (bytes.len() as u64, clock::encode_hex(&Sha256::digest(&bytes))));
        Ok(())
    }
}
