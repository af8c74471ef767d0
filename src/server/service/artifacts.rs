//! Artifacts: workers upload, people download.

use std::sync::Arc;

use app::domain::ids::{Attempt, JobId};
use app::domain::job::Report;
use app::protocol::status::ArtifactKind;
use app::protocol::topic::Topic;
use app::protocol::worker::ArtifactAck;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};

use super::Core;
use super::refusal::{Invalid, Limit, Refusal};
use super::reports::Subject;
use super::unit::Caller;
use crate::files::artifacts::{Stored, UploadError};
use crate::store::artifacts::StoredArtifact;
use crate::store::retention::Files;
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
    /// How many bytes it has, as far as its sender says so.
    pub size: u64,
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
        self.need_file_quota(&subject.job, (attempt, &announced.path), announced.size).await?;
        let place = (&subject.job, attempt, announced.path.as_str());
        let limit = self.policy.artifact_limit;
        // A file of many gigabytes may take up what was free when it began.
        let body = body.map(|bytes| match self.need_room_to_run() {
            Ok(()) => bytes.map_err(|error| error.to_string()),
            Err(_) => Err("the server's disk is full".to_owned()),
        });
        let received = self.artifacts.receive(place, body, announced.sha256.as_deref(), limit).await;
        let received = match received {
            Err(UploadError::Broken(_)) => {
                self.need_room_to_run()?;
                received.map_err(refused)?
            }
            other => other.map_err(refused)?,
        };
        // Whoever sent it may be gone before it is written down, or taken away again.
        let core = Arc::clone(self);
        let kept = tokio::spawn(async move {
            // That may have taken hours. What a newer attempt goes on from is not replaced any more.
            if let Err(refusal) = core.check_attempt(&subject).await {
                received.discard().await;
                return Err(refusal);
            }
            let stored = received.keep().await.map_err(refused)?;
            core.record(caller, subject, attempt, announced, stored).await
        });
        kept.await.unwrap_or_else(|error| Err(Refusal::Files(error.to_string())))
    }

    /// Refuses a file of so many bytes that would be more than its job, or its person, may have.
    pub(super) async fn need_file_quota(&self, job: &JobId, but: (Attempt, &str), new: u64) -> Result<(), Refusal> {
        let bounds = self.policy.bounds;
        let mut tx = self.read().await?;
        if tx.bytes_beside(job, but).await?.saturating_add(new) > bounds.file_bytes_per_job {
            return Err(Refusal::OverLimit(Limit::FilesOfJob { most: bounds.file_bytes_per_job }));
        }
        let owner = tx.job(job).await?.ok_or_else(|| Refusal::NoJob(job.clone()))?.submitted_by.clone();
        let fits = |used: u64| used.saturating_add(new) <= bounds.file_bytes_per_user;
        if self.file_bytes.recent(&owner, self.now()).is_some_and(fits) {
            return Ok(());
        }
        // A file that took the place of another was added to the sum all the same.
        let used = self.file_bytes.note(&owner, tx.bytes_of_person(&owner).await?, self.now());
        if !fits(used) {
            return Err(Refusal::OverLimit(Limit::FilesOfPerson { most: bounds.file_bytes_per_user }));
        }
        Ok(())
    }

    /// Writes down that a file is here, if its attempt still counts. If not, the file goes.
    pub async fn record(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        attempt: Attempt,
        announced: Announced,
        Stored { size, sha256 }: Stored,
    ) -> Result<ArtifactAck, Refusal> {
        let kind = announced.kind.as_str().to_owned();
        let artifact = StoredArtifact { path: announced.path, attempt, kind, size, sha256, created_at: self.now() };
        let input = Arc::new((subject, artifact));
        let of = Arc::clone(&input);
        let recorded = self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (subject, artifact) = &*input;
                let job = unit.job(&subject.job).await?;
                job.clone().reported(unit.now, &subject.worker, artifact.attempt, Report::Running)?;
                let file = Files::Artifact { attempt: artifact.attempt, path: artifact.path.clone() };
                if unit.tx.is_marked(&job.id, &file).await? {
                    return Err(Refusal::Files(format!("an earlier {} is being removed", artifact.path)));
                }
                let limit = unit.core.policy.most_artifacts;
                if unit.tx.has_artifacts(&job.id, (artifact.attempt, &artifact.path), limit).await? {
                    return Err(Invalid::TooMuch { what: "files of a job", limit }.into());
                }
                // Several may have come at once.
                let most = unit.core.policy.bounds.file_bytes_per_job;
                let others = unit.tx.bytes_beside(&job.id, (artifact.attempt, &artifact.path)).await?;
                if others.saturating_add(artifact.size) > most {
                    return Err(Refusal::OverLimit(Limit::FilesOfJob { most }));
                }
                unit.answers(&job).await?;
                unit.tx.put_artifact(&job.id, artifact).await?;
                unit.core.file_bytes.add(&job.submitted_by, artifact.size);
                unit.touch(Topic::Job(job.id));
                let StoredArtifact { path, size, sha256, .. } = artifact.clone();
                Ok(ArtifactAck { path, size_bytes: size, sha256 })
            })
        });
        let recorded = recorded.await;
        // A database that does not answer has perhaps written it.
        if recorded.as_ref().is_err_and(|refusal| !matches!(refusal, Refusal::Store(_))) {
            let (Subject { job, .. }, StoredArtifact { path, .. }) = &*of;
            self.withdraw(job.clone(), attempt, path.clone()).await;
        }
        recorded
    }

    /// Removes a file that nobody is to be told of.
    async fn withdraw(self: &Arc<Self>, job: JobId, attempt: Attempt, path: String) {
        let file = Arc::new((job, path));
        let given_up = self.change(Caller::system(), move |unit| {
            let file = Arc::clone(&file);
            Box::pin(async move {
                let (job, path) = &*file;
                unit.tx.give_up_file(job, attempt, path).await?;
                unit.touch(Topic::Job(job.clone()));
                Ok(())
            })
        });
        match given_up.await {
            Ok(()) => self.remove_soon(),
            Err(refusal) => tracing::warn!(?refusal, "a file that was refused stays on the disk"),
        }
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

pub(super) fn refused(error: UploadError) -> Refusal {
    match error {
        UploadError::Store(error) => Refusal::Files(error.to_string()),
        UploadError::TooLarge { .. } => Refusal::Upload { what: error.to_string(), too_large: true, kept: 0 },
        UploadError::Broken(_) | UploadError::WrongDigest { .. } => {
            Refusal::Upload { what: error.to_string(), too_large: false, kept: 0 }
        }
    }
}
