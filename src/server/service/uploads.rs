//! Large files come in pieces: whoever was cut off goes on where they were.

use std::pin::pin;
use std::sync::Arc;

use app::domain::ids::Attempt;
use app::domain::time::Millis;
use app::protocol::worker::{ArtifactAck, UploadProgress, Uploaded};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};

use super::Core;
use super::artifacts::{Announced, refused};
use super::refusal::{Invalid, Refusal};
use super::reports::Subject;
use super::unit::Caller;
use crate::files::artifacts::{Stored, UploadError};
use crate::files::uploads::{Aim, Begun};
use crate::store::artifacts::StoredArtifact;
use crate::text::is_plain_path;

/// So much is written at once.
const BLOCK: usize = 1 << 20;
/// An upload with which nobody goes on for so long is dropped.
const PATIENCE: Millis = Millis::seconds(86_400);

/// Which file is meant: as large as this, with this SHA-256.
#[derive(Debug, Clone)]
pub struct Whole {
    /// How many bytes it has.
    pub size: Option<u64>,
    /// Their SHA-256 in hex.
    pub sha256: Option<String>,
}

impl Core {
    /// How much of a file is here.
    pub async fn upload_progress(
        self: &Arc<Self>,
        subject: &Subject,
        path: String,
        whole: Whole,
    ) -> Result<UploadProgress, Refusal> {
        let attempt = self.check_attempt(subject).await?;
        let aim = self.aim(subject, attempt, path, whole)?;
        let received = match self.stored(&aim).await? {
            Some(artifact) => artifact.size,
            None => self.uploads.received(&aim).await?,
        };
        Ok(UploadProgress { received })
    }

    /// Takes a piece of a file, which begins at `offset`. With the last one it is stored, if it is what was announced.
    pub async fn put_piece<E: std::fmt::Display>(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        announced: Announced,
        (offset, size): (u64, Option<u64>),
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<Uploaded, Refusal> {
        let attempt = self.check_attempt(&subject).await?;
        let whole = Whole { size, sha256: announced.sha256.clone() };
        let aim = self.aim(&subject, attempt, announced.path.clone(), whole)?;
        if let Some(stored) = self.stored(&aim).await? {
            return Ok(Uploaded::Stored(ack(stored)));
        }
        self.need_room_for(&subject.job, attempt).await?;
        self.need_file_quota(&subject.job, (attempt, &aim.path), aim.size).await?;
        let taken = self.take(&aim, offset, body).await;
        if !matches!(taken, Ok(received) if received == aim.size)
            // Somebody has sent the same, and it was stored meanwhile.
            && let Some(stored) = self.stored(&aim).await?
        {
            return Ok(Uploaded::Stored(ack(stored)));
        }
        match taken? {
            received if received < aim.size => Ok(Uploaded::Received(UploadProgress { received })),
            _ => self.finish(caller, subject, announced, aim).await.map(Uploaded::Stored),
        }
    }

    /// Takes a piece in. How much of the file is here now.
    async fn take<E: std::fmt::Display>(
        &self,
        aim: &Aim,
        offset: u64,
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<u64, Refusal> {
        let received = self.uploads.received(aim).await?;
        if offset > received {
            return Err(Refusal::UploadGap { received });
        }
        let arrived = self.receive(aim, offset, body).await;
        // What came before it broke off is not sent again.
        let received = self.uploads.sync(aim).await?;
        arrived.map_err(|refusal| refusal.keeping(received))?;
        Ok(received)
    }

    async fn receive<E: std::fmt::Display>(
        &self,
        aim: &Aim,
        mut offset: u64,
        body: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<(), Refusal> {
        let (mut body, mut block) = (pin!(body), BytesMut::new());
        loop {
            let (goes_on, broken) = match body.next().await {
                Some(Ok(bytes)) => {
                    block.extend_from_slice(&bytes);
                    (true, None)
                }
                Some(Err(error)) => (false, Some(format!("the upload broke off: {error}"))),
                None => (false, None),
            };
            if offset + block.len() as u64 > aim.size {
                let what = format!("more than the {} bytes that were announced", aim.size);
                return Err(Refusal::Upload { what, too_large: false, kept: 0 });
            }
            if block.len() >= BLOCK || !goes_on {
                self.need_room_to_run()?;
                let piece = block.split().freeze();
                let end = offset + piece.len() as u64;
                let received = self.uploads.append(aim, offset, piece).await?;
                if received < offset {
                    // Somebody has dropped it meanwhile.
                    return Err(Refusal::UploadGap { received });
                }
                offset = end;
            }
            match broken {
                Some(what) => return Err(Refusal::Upload { what, too_large: false, kept: 0 }),
                None if goes_on => {}
                None => return Ok(()),
            }
        }
    }

    /// Stores a file of which all bytes are here. That may take its time, and goes on when whoever sent it does not wait.
    async fn finish(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        announced: Announced,
        aim: Aim,
    ) -> Result<ArtifactAck, Refusal> {
        let (core, of) = (Arc::clone(self), aim.clone());
        let store = async move {
            let stored = core.store_whole(caller, subject, announced, &aim).await;
            // What is not what was announced never becomes it, and what was refused is not asked for again.
            if matches!(
                stored,
                Ok(_) | Err(Refusal::Upload { .. } | Refusal::Job(_) | Refusal::Invalid(_) | Refusal::OverLimit(_))
            ) {
                core.uploads.drop_one(&aim).await?;
            }
            stored
        };
        self.storing.join(&of, store).await
    }

    async fn store_whole(
        self: &Arc<Self>,
        caller: Caller,
        subject: Subject,
        announced: Announced,
        aim: &Aim,
    ) -> Result<ArtifactAck, Refusal> {
        if let Some(stored) = self.stored(aim).await? {
            return Ok(ack(stored));
        }
        let (size, sha256) = (self.uploads.received(aim).await?, self.uploads.digest(aim).await?);
        if (size, &sha256) != (aim.size, &aim.sha256) {
            return Err(refused(UploadError::WrongDigest { announced: aim.sha256.clone(), found: sha256 }));
        }
        self.check_attempt(&subject).await?;
        let place = (&aim.job, aim.attempt, aim.path.as_str());
        self.artifacts.adopt(place, &self.uploads.file(aim)).await.map_err(refused)?;
        self.record(caller, subject, aim.attempt, announced, Stored { size, sha256 }).await
    }

    /// The file, if it is here already.
    async fn stored(&self, aim: &Aim) -> Result<Option<StoredArtifact>, Refusal> {
        let found = self.read().await?.artifact(&aim.job, &aim.path).await?;
        let is_it =
            |found: &StoredArtifact| (found.attempt, found.size, &found.sha256) == (aim.attempt, aim.size, &aim.sha256);
        Ok(found.filter(is_it))
    }

    fn aim(&self, subject: &Subject, attempt: Attempt, path: String, whole: Whole) -> Result<Aim, Refusal> {
        if !is_plain_path(&path) {
            return Err(Invalid::Path(path.chars().take(80).collect()).into());
        }
        let allowed = "the size of the whole file in bytes, where it comes in pieces";
        let size = whole.size.ok_or(Invalid::Range { field: "size", allowed })?;
        let is_digest = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let allowed = "the SHA-256 of the whole file in hex, where it comes in pieces";
        let sha256 = whole.sha256.filter(is_digest).ok_or(Invalid::Range { field: "sha256", allowed })?;
        let limit = self.policy.artifact_limit;
        if size > limit {
            return Err(Refusal::Upload {
                what: format!("the file is larger than {limit} bytes"),
                too_large: true,
                kept: 0,
            });
        }
        Ok(Aim { job: subject.job.clone(), attempt, path, size, sha256: sha256.to_ascii_lowercase() })
    }

    /// Drops uploads with which nobody goes on: their attempt is over, or nothing of them came for a day. How many.
    pub async fn sweep_uploads(&self) -> Result<u64, Refusal> {
        let mut dropped = 0;
        for begun in self.uploads.begun().await? {
            if self.now() - begun.touched > PATIENCE || self.is_left(&begun).await? {
                self.uploads.give_up(begun).await?;
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    async fn is_left(&self, begun: &Begun) -> Result<bool, Refusal> {
        let job = self.read().await?.job(&begun.job).await?;
        Ok(job.is_none_or(|job| job.has_ended() || job.attempt != begun.attempt))
    }
}

fn ack(StoredArtifact { path, size, sha256, .. }: StoredArtifact) -> ArtifactAck {
    ArtifactAck { path, size_bytes: size, sha256 }
}
