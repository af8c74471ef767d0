//! Files that the trainer made, on their way to the orchestrator.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use app::protocol::status::ArtifactKind;
use futures_util::{TryStreamExt, stream};
use reqwest::Body;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio_util::io::ReaderStream;

use super::{Attempt, blocking};
use crate::api::{ApiError, Upload, until_answered};
use crate::artifacts::{self, Artifact};
use crate::clock;

/// How often samples are looked for.
const PERIOD: Duration = Duration::from_secs(2);
/// A file that has not changed for so long is finished, in ms.
const SETTLED_MS: i64 = 1_500;
/// How often a file that changes under our hands is tried.
const TRIES: u32 = 3;
const BLOCK: usize = 256 * 1024;

impl Attempt {
    /// Sends samples as they appear; the rest follows at the end.
    pub(super) async fn pump_samples(&self, mut done: watch::Receiver<bool>) {
        let mut refused = HashSet::new();
        while !*done.borrow() {
            for artifact in self.unsent().await {
                let age = clock::now().0 - artifact.file.modified_ms;
                let wanted = artifact.kind == ArtifactKind::Sample && age > SETTLED_MS;
                if wanted && !refused.contains(&artifact.file.path) && self.send_file(&artifact).await.is_err() {
                    refused.insert(artifact.file.path);
                }
                if *done.borrow() {
                    return;
                }
            }
            let _ = tokio::time::timeout(PERIOD, done.wait_for(|done| *done)).await;
        }
    }

    /// Sends all that is to be kept. Answers with a sentence for each file that the orchestrator does not take.
    pub(super) async fn send_files(&self) -> Vec<String> {
        let mut refused = Vec::new();
        for artifact in artifacts::at_end(self.unsent().await) {
            if let Err(error) = self.send_file(&artifact).await {
                refused.push(format!("{} was not stored: {error}", artifact.file.path));
            }
        }
        refused
    }

    async fn unsent(&self) -> Vec<Artifact> {
        let output = self.dir.output();
        let sent = self.state().uploaded.clone();
        let find = move || {
            let mut found = artifacts::list(&output)?;
            let is_new = |artifact: &Artifact| !sent.contains(&artifact.file);
            let from_events = |artifact: &Artifact| artifact.file.path.starts_with(artifacts::FROM_EVENTS);
            // What is sent is not compared again.
            if found.iter().any(|artifact| from_events(artifact) && is_new(artifact))
                && let Err(error) = artifacts::drop_copies(&output, &mut found)
            {
                tracing::debug!("samples cannot be compared: {error}");
            }
            found.retain(is_new);
            Ok(found)
        };
        match blocking(find).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!("{}: its output cannot be listed: {error}", self.key());
                Vec::new()
            }
        }
    }

    async fn send_file(&self, artifact: &Artifact) -> Result<(), ApiError> {
        let path = self.dir.output().join(&artifact.file.path);
        let what = format!("sending {} of {}", artifact.file.path, self.key());
        let mut tries = 0;
        loop {
            tries += 1;
            let (size, sha256) = {
                let path = path.clone();
                let unreadable = |error: std::io::Error| ApiError::Answer(format!("it cannot be read: {error}"));
                blocking(move || digest(&path)).await.map_err(unreadable)?
            };
            let file = Upload { path: &artifact.file.path, kind: artifact.kind, size, sha256: &sha256 };
            let send = async || {
                // What has changed since the digest would be refused, or sent for ever.
                let now = tokio::fs::metadata(&path).await.map_or(None, |meta| Some(meta.len()));
                if now != Some(size) {
                    return Err(ApiError::Rejected { status: 422, detail: "it changes while it is sent".to_owned() });
                }
                self.api.artifact(&file, || body(path.clone(), size)).await
            };
            match until_answered(&self.context.online, &what, send).await {
                Ok(_) => break,
                // Most likely it was written to between the digest and the sending.
                Err(ApiError::Rejected { .. }) if tries < TRIES => tokio::time::sleep(PERIOD).await,
                Err(error) => {
                    self.judge(&what, &error);
                    return Err(error);
                }
            }
        }
        let file = artifact.file.clone();
        self.update(false, |state| {
            state.uploaded.retain(|known| known.path != file.path);
            state.uploaded.push(file);
        })
        .await;
        Ok(())
    }
}

fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut size = 0;
    loop {
        let count = file.read(&mut block)?;
        if count == 0 {
            return Ok((size, clock::hex(&hash.finalize())));
        }
        size += count as u64;
        hash.update(&block[..count]);
    }
}

/// The file's first `size` bytes, read as they are sent.
fn body(path: PathBuf, size: u64) -> Body {
    let open = async move {
        let file = tokio::fs::File::open(path).await?.take(size);
        Ok::<_, std::io::Error>(ReaderStream::with_capacity(file, BLOCK))
    };
    Body::wrap_stream(stream::once(open).try_flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_the_whole_file() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("a");
        let bytes = vec![7; BLOCK * 2 + 1];
        std::fs::write(&path, &bytes)?;
        assert_eq!(digest(&path)?, (bytes.len() as u64, clock::hex(&Sha256::digest(&bytes))));
        Ok(())
    }
}
