//! One file on its way to the orchestrator: small ones at once, large ones in pieces, so that what broke off goes on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{TryStreamExt, stream};
use reqwest::Body;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::{Attempt, blocking};
use crate::api::{ApiError, Taken, Upload, until_answered};
use crate::artifacts::{Artifact, inside};
use crate::clock;
use crate::files::Uploaded;

/// The size of a piece, and of the largest file that is sent at once, in bytes.
const PIECE: u64 = 16 * 1024 * 1024;
/// How often a file that changes under our hands is tried, or one of which nothing more arrives.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);
const BLOCK: usize = 256 * 1024;

/// Why a file was not sent.
#[derive(Debug, thiserror::Error)]
pub enum Unsent {
    /// The trainer has removed it.
    #[error("it is gone from the worker's disk")]
    Vanished,
    /// It cannot be read, or is no plain file any more.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// The orchestrator does not take it.
    #[error("{0}")]
    Refused(#[from] ApiError),
}

impl From<io::Error> for Unsent {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Vanished } else { Self::Unreadable(error) }
    }
}

impl Attempt {
    /// Sends a file as it is now, and writes down that it was sent.
    pub(super) async fn send_file(&self, artifact: &Artifact) -> Result<(), Unsent> {
        let what = format!("sending {} of {}", artifact.file.path, self.key());
        let mut tries = 0;
        let (size, sha256) = loop {
            tries += 1;
            let (output, path) = (self.dir.output(), artifact.file.path.clone());
            let wanted = Arc::new(());
            let still = Arc::downgrade(&wanted);
            let look = move || digest(inside::open(&output, &path)?, || still.strong_count() > 0);
            let (size, sha256) = blocking(look).await?;
            drop(wanted);
            let file = Upload { path: &artifact.file.path, kind: artifact.kind, size, sha256: &sha256 };
            let sent =
                if size > PIECE { self.send_pieces(&file, &what).await } else { self.send_at_once(&file, &what).await };
            match sent {
                Ok(()) => break (size, sha256),
                // Most likely it was written to between the digest and the sending.
                Err(ApiError::Rejected { .. }) if tries < TRIES => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    self.judge(&what, &error);
                    return Err(error.into());
                }
            }
        };
        let file = Uploaded { size, sha256, ..artifact.file.clone() };
        self.kept.has_sent(file).await;
        Ok(())
    }

    async fn send_at_once(&self, file: &Upload<'_>, what: &str) -> Result<(), ApiError> {
        let send = async || {
            self.still(file).await?;
            self.api.artifact(file, || body(&self.dir.output(), file.path, (0, file.size))).await
        };
        until_answered(&self.context.online, what, send).await.map(drop)
    }

    /// Goes on where it stood, whoever broke off.
    async fn send_pieces(&self, file: &Upload<'_>, what: &str) -> Result<(), ApiError> {
        let online = &self.context.online;
        let mut offset = until_answered(online, what, async || self.api.received(file).await).await?.min(file.size);
        let mut stalls = 0;
        while stalls < TRIES {
            // Of nothing, if all of it is there and was not put together yet.
            let piece = (offset, PIECE.min(file.size - offset));
            let send = async || {
                self.still(file).await?;
                self.api.piece(file, piece, || body(&self.dir.output(), file.path, piece)).await
            };
            let received = match until_answered(online, what, send).await {
                Ok(Taken { received: None }) => return Ok(()),
                Ok(Taken { received: Some(received) }) => received,
                // It has less than it said: its disk was changed.
                Err(ApiError::Conflict { code, durable: Some(received), .. }) if code == "upload_gap" => received,
                Err(error) => return Err(error),
            };
            if received <= offset {
                stalls += 1;
                tokio::time::sleep(PAUSE).await;
            }
            offset = received.min(file.size);
        }
        Err(ApiError::Answer(format!("the orchestrator has taken {offset} of {} bytes, and no more", file.size)))
    }

    /// What has grown or shrunk since the digest would be refused, or sent for ever.
    async fn still(&self, file: &Upload<'_>) -> Result<(), ApiError> {
        let (output, path) = (self.dir.output(), file.path.to_owned());
        let size = blocking(move || Ok(inside::open(&output, &path)?.metadata()?.len())).await.ok();
        if size == Some(file.size) {
            return Ok(());
        }
        Err(ApiError::Rejected { status: 422, detail: "it changes while it is sent".to_owned() })
    }
}

/// How long a file is, and its SHA-256 in hex. It stops when nobody wants it any more: a file can be long without taking room,
/// and to read it would take days.
pub(super) fn digest(mut file: File, is_wanted: impl Fn() -> bool) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut size = 0;
    loop {
        if !is_wanted() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok((size, clock::hex(&hash.finalize())));
        }
        size += count as u64;
        hash.update(&block[..count]);
    }
}

/// So many of the file's bytes from an offset on, read as they are sent.
fn body(output: &Path, path: &str, (offset, length): (u64, u64)) -> Body {
    let (output, path) = (output.to_owned(), path.to_owned());
    let open = async move {
        let open = move || {
            let mut file = inside::open(&output, &path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        let file = tokio::fs::File::from_std(blocking(open).await?).take(length);
        Ok::<_, io::Error>(ReaderStream::with_capacity(file, BLOCK))
    };
    Body::wrap_stream(stream::once(open).try_flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_the_whole_file() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let bytes = vec![7; BLOCK * 2 + 1];
        std::fs::write(temp.path().join("a"), &bytes)?;
        assert!(digest(inside::open(temp.path(), "a")?, || false).is_err());
        let digest = digest(inside::open(temp.path(), "a")?, || true)?;
        assert_eq!(digest, (bytes.len() as u64, clock::hex(&Sha256::digest(&bytes))));
        Ok(())
    }
}
