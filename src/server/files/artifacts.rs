//! Artifact files, through `object_store`: a directory now, a bucket where one is configured.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use app::domain::ids::{AttemptNumber, JobId};
use app::threads::run_io;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::io::ReaderStream;

use super::hard_links;
use crate::tokens::hex;

/// The size of parts passed to the store.
const PART_BYTES: usize = 8 << 20;

#[derive(Clone)]
pub struct ArtifactStore {
    store: Arc<dyn ObjectStore>,
    directory: Arc<LocalFileSystem>,
    removal_lock: Arc<Mutex<()>>,
}

/// Why an upload failed.
#[derive(Debug)]
pub enum UploadError {
    /// The client disconnected.
    Interrupted(String),
    /// The file exceeds the limit.
    TooLarge { limit: u64 },
    /// The digest is not the announced one.
    DigestMismatch {
        /// The announced digest.
        announced: String,
        /// The digest of the received bytes.
        found: String,
    },
    /// The disk or bucket failed.
    Store(object_store::Error),
}

impl From<object_store::Error> for UploadError {
    fn from(error: object_store::Error) -> Self {
        Self::Store(error)
    }
}

/// A stored file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// A received file that is not stored yet.
pub struct ReceivedFile {
    upload: Box<dyn MultipartUpload>,
    stored: StoredFile,
}

impl ReceivedFile {
    /// Stores it; replaces an existing file.
    pub async fn commit(mut self) -> Result<StoredFile, UploadError> {
        self.upload.complete().await?;
        Ok(self.stored)
    }

    /// Discards it; an existing file stays.
    pub async fn discard(mut self) {
        // Remaining parts are found by their names.
        let _ = self.upload.abort().await;
    }
}

impl ArtifactStore {
    /// Opens the store in this directory, which is created if necessary.
    pub fn open(root: &PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(root)?;
        let store = LocalFileSystem::new_with_prefix(root)?.with_automatic_cleanup(true).with_fsync(true);
        let directory = Arc::new(store);
        Ok(Self { store: directory.clone(), directory, removal_lock: Arc::default() })
    }

    /// Receives a stream for a validated path; the file is not visible before it is committed.
    pub async fn receive<E: std::fmt::Display>(
        &self,
        (job, attempt, path): (&JobId, AttemptNumber, &str),
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin + Send,
        announced: Option<&str>,
        limit: u64,
    ) -> Result<ReceivedFile, UploadError> {
        let mut upload = self.store.put_multipart(&location(job, attempt, path)).await?;
        match write_upload(&mut *upload, &mut body, announced, limit).await {
            Ok(stored) => Ok(ReceivedFile { upload, stored }),
            Err(error) => {
                // The error matters; remaining parts are found by their names.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// Stores a complete file of this host: with a hard link where both are on one file system. The original stays.
    pub async fn store_local_file(
        &self,
        artifact_key: (&JobId, AttemptNumber, &str),
        file: &std::path::Path,
    ) -> Result<(), UploadError> {
        let target = self.directory.path_to_filesystem(&location(artifact_key.0, artifact_key.1, artifact_key.2))?;
        let (from, to) = (file.to_owned(), target);
        if run_io(move || hard_links::link_replacing(&from, &to)).await.is_ok() {
            return Ok(());
        }
        // Two file systems, or one without hard links.
        let source = tokio::fs::File::open(file).await.map_err(|error| UploadError::Interrupted(error.to_string()))?;
        let body = ReaderStream::with_capacity(source, 256 << 10);
        self.receive(artifact_key, body, None, u64::MAX).await?.commit().await.map(drop)
    }

    /// Serializes removals.
    pub async fn lock_removals(&self) -> MutexGuard<'_, ()> {
        self.removal_lock.lock().await
    }

    pub async fn remove_job(&self, job: &JobId) -> object_store::Result<()> {
        let files: Vec<_> = self.store.list(Some(&Path::from(job.as_str()))).try_collect().await?;
        for file in files {
            self.delete(&file.location).await?;
        }
        Ok(())
    }

    pub async fn remove_file(&self, (job, attempt, path): (&JobId, AttemptNumber, &str)) -> object_store::Result<()> {
        self.delete(&location(job, attempt, path)).await
    }

    async fn delete(&self, location: &Path) -> object_store::Result<()> {
        match self.store.delete(location).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads a range of bytes; of an empty one, only whether the file exists.
    pub async fn get_range(
        &self,
        (job, attempt, path): (&JobId, AttemptNumber, &str),
        range: Range<u64>,
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        if range.is_empty() {
            self.store.head(&location(job, attempt, path)).await?;
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        Ok(self.store.get_opts(&location(job, attempt, path), options).await?.into_stream())
    }
}

async fn write_upload<E: std::fmt::Display>(
    upload: &mut dyn MultipartUpload,
    body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    announced: Option<&str>,
    limit: u64,
) -> Result<StoredFile, UploadError> {
    let (mut hash, mut size, mut part) = (Sha256::new(), 0_u64, Vec::new());
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| UploadError::Interrupted(error.to_string()))?;
        hash.update(&chunk);
        size += chunk.len() as u64;
        if size > limit {
            return Err(UploadError::TooLarge { limit });
        }
        part.extend_from_slice(&chunk);
        if part.len() >= PART_BYTES {
            upload.put_part(std::mem::take(&mut part).into()).await?;
        }
    }
    if !part.is_empty() {
        upload.put_part(part.into()).await?;
    }
    let sha256 = hex(&hash.finalize());
    match announced {
        Some(announced) if !announced.eq_ignore_ascii_case(&sha256) => {
            Err(UploadError::DigestMismatch { announced: announced.to_owned(), found: sha256 })
        }
        _ => Ok(StoredFile { size, sha256 }),
    }
}

fn location(job: &JobId, attempt: AttemptNumber, path: &str) -> Path {
    let attempt = attempt.to_string();
    [job.as_str(), attempt.as_str()].into_iter().chain(path.split('/')).collect()
}
