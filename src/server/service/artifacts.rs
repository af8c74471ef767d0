//! Artifacts: workers upload, people download.

use std::sync::Arc;

use app::domain::ids::{Attempt, JobId};
use app::protocol::status::ArtifactKind;
use app::protocol::topic::Topic;
use app::protocol::worker::ArtifactAck;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::reports::Subject;
use super::unit::Caller;
use crate::files::artifacts::{Stored, UploadError};
use crate::store::artifacts::StoredArtifact;
use crate::text::is_plain_path;

/// What a worker says of a file it sends.
#[derive(Debug, Clone)]
pub struct Announced {
    /// Path below the job's output.
    pub path: String,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its SHA-256 in hex, if the sender took it.
    pub sha256: Option<String>,
}

/// A file to send to somebody.
pub struct Download {
    /// What is known of it.
    pub artifact: StoredArtifact,
    /// Its bytes.
    pub bytes: BoxStream<'static, object_store::Result<Bytes>>,
}

impl Core {
    /// Takes a file.
    pub async fn put_artifact<E: std::fmt::Display>(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        announced: Announced,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin + Send,
    ) -> Result<ArtifactAck, Refusal> {
        if !is_plain_path(&announced.path) {
            return Err(Invalid::Path(announced.path.chars().take(80).collect()).into());
        }
        let attempt = self.check_attempt(&subject).await?;
        self.need_room_for(&subject.job, attempt).await?;
        let place = (&subject.job, attempt, announced.path.as_str());
        let put = self.artifacts.put(place, body, announced.sha256.as_deref(), self.policy.artifact_limit).await;
        let Stored { size, sha256 } = put.map_err(refused)?;
        let artifact = Arc::new((
            subject.job,
            StoredArtifact {
                path: announced.path,
                attempt,
                kind: announced.kind.as_str().to_owned(),
                size,
                sha256,
                created_at: self.now(),
            },
        ));
        self.change(caller, move |unit| {
            let artifact = Arc::clone(&artifact);
            Box::pin(async move {
                let (job, artifact) = &*artifact;
                unit.tx.put_artifact(job, artifact).await?;
                unit.touch(Topic::Job(job.clone()));
                let StoredArtifact { path, size, sha256, .. } = artifact.clone();
                Ok(ArtifactAck { path, size_bytes: size, sha256 })
            })
        })
        .await
    }

    /// Opens a file of a job, the newest attempt's of that path.
    pub async fn open_artifact(&self, job: &JobId, path: &str) -> Result<Download, Refusal> {
        let artifact = self.read().await?.artifact(job, path).await?;
        let artifact = artifact.ok_or_else(|| Refusal::NoArtifact(path.to_owned()))?;
        let place: (&JobId, Attempt, &str) = (job, artifact.attempt, path);
        let bytes = self.artifacts.get(place).await.map_err(|error| Refusal::Files(error.to_string()))?;
        Ok(Download { artifact, bytes })
    }
}

fn refused(error: UploadError) -> Refusal {
    match error {
        UploadError::Store(error) => Refusal::Files(error.to_string()),
        UploadError::TooLarge { .. } => Refusal::Upload { what: error.to_string(), too_large: true },
        UploadError::Broken(_) | UploadError::WrongDigest { .. } => {
            Refusal::Upload { what: error.to_string(), too_large: false }
        }
    }
}
