//! Artifact files, through `object_store`: a directory now, a bucket where one is configured.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use app::domain::ids::{Attempt, JobId};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetOptions, MultipartUpload, ObjectStore, ObjectStoreExt};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::io::ReaderStream;

use super::linked;
use super::logs::blocking;
use crate::tokens::hex;

/// How much is handed to the store at once.
const PART: usize = 8 << 20;

/// Where artifacts are.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn ObjectStore>,
    directory: Arc<LocalFileSystem>,
    removes: Arc<Mutex<()>>,
}

/// Why an upload failed.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The sender broke off.
    #[error("the upload broke off: {0}")]
    Broken(String),
    /// More bytes than are taken.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Other bytes than were announced.
    #[error("the bytes that arrived have SHA-256 {found}, announced was {announced}")]
    WrongDigest {
        /// What the sender said.
        announced: String,
        /// What arrived.
        found: String,
    },
    /// The disk or bucket failed.
    #[error("the file could not be stored: {0}")]
    Store(#[from] object_store::Error),
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Bytes.
    pub size: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// What arrived, and is not kept yet.
pub struct Received {
    upload: Box<dyn MultipartUpload>,
    stored: Stored,
}

impl Received {
    /// Keeps it, in the place of what was there.
    pub async fn keep(mut self) -> Result<Stored, UploadError> {
        self.upload.complete().await?;
        Ok(self.stored)
    }

    /// Leaves what was there.
    pub async fn discard(mut self) {
        // What is left of the parts is found by their names.
        let _ = self.upload.abort().await;
    }
}

impl Artifacts {
    /// Files below this directory, which is made if need be.
    pub fn open(root: &PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(root)?;
        let store = LocalFileSystem::new_with_prefix(root)?.with_automatic_cleanup(true).with_fsync(true);
        let directory = Arc::new(store);
        Ok(Self { store: directory.clone(), directory, removes: Arc::default() })
    }

    /// Takes a stream in under a path that was checked before; nothing of it is there before it is kept.
    pub async fn receive<E: std::fmt::Display>(
        &self,
        (job, attempt, path): (&JobId, Attempt, &str),
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin + Send,
        announced: Option<&str>,
        limit: u64,
    ) -> Result<Received, UploadError> {
        let mut upload = self.store.put_multipart(&location(job, attempt, path)).await?;
        match receive(&mut *upload, &mut body, announced, limit).await {
            Ok(stored) => Ok(Received { upload, stored }),
            Err(error) => {
                // The error matters; what is left of the parts is found by their names.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// Puts a file there that is on this host already, whole: without copying it where both are on one file system. It stays
    /// where it was, too.
    pub async fn adopt(&self, place: (&JobId, Attempt, &str), file: &std::path::Path) -> Result<(), UploadError> {
        let target = self.directory.path_to_filesystem(&location(place.0, place.1, place.2))?;
        let (from, to) = (file.to_owned(), target);
        if blocking(move || linked::replace(&from, &to)).await.is_ok() {
            return Ok(());
        }
        // Two file systems, or one without links.
        let bytes = tokio::fs::File::open(file).await.map_err(|error| UploadError::Broken(error.to_string()))?;
        let body = ReaderStream::with_capacity(bytes, 256 << 10);
        self.receive(place, body, None, u64::MAX).await?.keep().await.map(drop)
    }

    /// Whoever removes takes turns.
    pub async fn turn_to_remove(&self) -> MutexGuard<'_, ()> {
        self.removes.lock().await
    }

    /// Removes all files of a job.
    pub async fn remove(&self, job: &JobId) -> object_store::Result<()> {
        let files: Vec<_> = self.store.list(Some(&Path::from(job.as_str()))).try_collect().await?;
        for file in files {
            self.delete(&file.location).await?;
        }
        Ok(())
    }

    /// Removes one file.
    pub async fn remove_one(&self, (job, attempt, path): (&JobId, Attempt, &str)) -> object_store::Result<()> {
        self.delete(&location(job, attempt, path)).await
    }

    async fn delete(&self, location: &Path) -> object_store::Result<()> {
        match self.store.delete(location).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// These of the bytes.
    pub async fn get_range(
        &self,
        (job, attempt, path): (&JobId, Attempt, &str),
        range: Range<u64>,
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        Ok(self.store.get_opts(&location(job, attempt, path), options).await?.into_stream())
    }

    /// The bytes.
    pub async fn get(
        &self,
        (job, attempt, path): (&JobId, Attempt, &str),
    ) -> object_store::Result<BoxStream<'static, object_store::Result<Bytes>>> {
        Ok(self.store.get(&location(job, attempt, path)).await?.into_stream().map_err(Into::into).boxed())
    }
}

async fn receive<E: std::fmt::Display>(
    upload: &mut dyn MultipartUpload,
    body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    announced: Option<&str>,
    limit: u64,
) -> Result<Stored, UploadError> {
    let (mut hash, mut size, mut part) = (Sha256::new(), 0_u64, Vec::new());
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| UploadError::Broken(error.to_string()))?;
        hash.update(&chunk);
        size += chunk.len() as u64;
        if size > limit {
            return Err(UploadError::TooLarge { limit });
        }
        part.extend_from_slice(&chunk);
        if part.len() >= PART {
            upload.put_part(std::mem::take(&mut part).into()).await?;
        }
    }
    if !part.is_empty() {
        upload.put_part(part.into()).await?;
    }
    let sha256 = hex(&hash.finalize());
    match announced {
        Some(announced) if !announced.eq_ignore_ascii_case(&sha256) => {
            Err(UploadError::WrongDigest { announced: announced.to_owned(), found: sha256 })
        }
        _ => Ok(Stored { size, sha256 }),
    }
}

fn location(job: &JobId, attempt: Attempt, path: &str) -> Path {
    let attempt = attempt.to_string();
    [job.as_str(), attempt.as_str()].into_iter().chain(path.split('/')).collect()
}
