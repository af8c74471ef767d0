//! Files of a job as one zip archive.

use std::io;
use std::sync::Arc;

use app::domain::ids::JobId;
use app::protocol::artifacts::{ArtifactsZipQuery, is_at_or_below};
use app::protocol::status::ArtifactKind;
use async_stream::try_stream;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::ArtifactService;
use crate::files::artifacts::ArtifactStore;
use crate::files::zip::{ZipEntry, ZipWriter, archive_length, checksum};
use crate::service::error::{InvalidInput, ServiceError};
use crate::store::artifacts::StoredArtifact;
use crate::text::is_plain_path;

/// The archive of some files of a job.
pub struct ArtifactArchive {
    /// The name of its file.
    pub name: String,
    /// How many bytes it has.
    pub length: u64,
    job: JobId,
    files: Vec<StoredArtifact>,
    store: Arc<ArtifactStore>,
}

impl ArtifactService {
    /// Finds the files of an archive: for each path only the newest attempt's.
    pub async fn archive(&self, id: &JobId, query: &ArtifactsZipQuery) -> Result<ArtifactArchive, ServiceError> {
        let mut tx = self.context.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| ServiceError::JobNotFound(id.clone()))?;
        let kind = |file: &StoredArtifact| ArtifactKind::parse(&file.kind).unwrap_or(ArtifactKind::Other);
        let mut files = tx.artifacts(id).await?;
        files.retain(|file| query.matches(&file.path, kind(file)));
        let missing = query.path.iter().find(|name| !files.iter().any(|file| is_at_or_below(&file.path, name)));
        if let Some(missing) = missing {
            return Err(ServiceError::ArtifactNotFound(missing.clone()));
        }
        if files.is_empty() {
            return Err(ServiceError::NoArtifacts);
        }
        // Uploads are checked; what unpacks an archive may not.
        if let Some(file) = files.iter().find(|file| !is_plain_path(&file.path)) {
            return Err(InvalidInput::Path(file.path.clone()).into());
        }
        let number = job.number.map_or_else(|| id.to_string(), |number| number.to_string());
        let content = if query.kind == Some(ArtifactKind::Final) { "weights" } else { "files" };
        Ok(ArtifactArchive {
            name: format!("{}-{number}-{content}.zip", job.spec.config_name),
            length: archive_length(files.iter().map(entry)),
            job: id.clone(),
            files,
            store: Arc::clone(&self.files),
        })
    }
}

impl ArtifactArchive {
    /// Reads one file after the other. A file that is missing, or has changed its length, breaks the stream, because an
    /// archive without it would look complete.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let Self { job, files, store, .. } = self;
        try_stream! {
            let mut zip = ZipWriter::default();
            for file in files {
                let entry = entry(&file);
                yield Bytes::from(entry.header());
                let bytes = store.get_range((&job, file.attempt, &file.path), 0..file.size).await;
                let mut bytes = bytes.map_err(|error| broken(&job, &file, &error.to_string()))?;
                let (mut checksum, mut length) = (checksum(), 0);
                while let Some(chunk) = bytes.next().await {
                    let chunk = chunk.map_err(|error| broken(&job, &file, &error.to_string()))?;
                    checksum.update(&chunk);
                    length += chunk.len() as u64;
                    yield chunk;
                }
                if length != file.size {
                    Err(broken(&job, &file, "it has another length on the disk"))?;
                }
                yield Bytes::from(zip.end(&entry, checksum.finalize()));
            }
            yield Bytes::from(zip.finish());
        }
    }
}

fn entry(file: &StoredArtifact) -> ZipEntry {
    ZipEntry { path: file.path.clone(), size: file.size, modified: file.created_at }
}

fn broken(job: &JobId, file: &StoredArtifact, reason: &str) -> io::Error {
    tracing::error!(%job, path = file.path, reason, "artifacts: an archive was aborted");
    io::Error::other("a file cannot be read")
}
