//! Where the trainer goes on: from what an earlier attempt left here, or from what one has sent to the orchestrator.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use app::protocol::worker::{CheckpointFile, EarlierCheckpoint};
use reqwest::StatusCode;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::checkpoints::{self, Left};
use super::pieces::digest;
use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};
use crate::artifacts::checkpoints::step;
use crate::bundle::is_plain;
use crate::config::disk::gib;
use crate::room::space;

/// Where files are until all of them are there.
const ASIDE: &str = "incoming";
/// A download that brings nothing for so long is broken.
const SILENCE: Duration = Duration::from_secs(30);
/// One that brings nothing for so long, however often it is begun, is given up: what it would save is worth waiting for.
const PATIENCE: Duration = Duration::from_hours(1);
/// How often a damaged file is fetched.
const TRIES: u32 = 2;
/// How many checkpoints are tried, each in the place of one that is gone.
const OFFERS: u32 = 3;

/// Why a checkpoint is not used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("the orchestrator names {0:?}, which is no checkpoint's file")]
    Name(String),
    #[error("it has {size}, and the worker's disk has {usable} beyond what --keep-free keeps")]
    NoRoom { size: String, usable: String },
    #[error("{0} arrived damaged")]
    Damaged(String),
    #[error("{0}")]
    Fetch(#[from] ApiError),
    #[error("it cannot be written: {0}")]
    Disk(#[from] io::Error),
}

impl Attempt {
    /// Brings the newest checkpoint of earlier attempts into the output directory. Answers with whether there is one.
    ///
    /// # Errors
    /// If the attempt is no longer this worker's.
    pub(super) async fn bring_checkpoint(&self) -> Result<bool, ApiError> {
        let (dir, key) = (self.dir.clone(), self.key().clone());
        let left = blocking(move || checkpoints::left(&dir, &key)).await.unwrap_or_else(|error| {
            tracing::warn!("{}: earlier attempts on this host cannot be looked at: {error}", self.key());
            None
        });
        let is_newer = |step: u64| left.as_ref().is_none_or(|left| step > left.step);
        let mut offered = self.offered_checkpoint().await?;
        for _ in 0..OFFERS {
            let Some(sent) = offered.take() else { break };
            let Some(step) = step(&sent.name).filter(|step| is_newer(*step)) else { break };
            match self.fetch_checkpoint(&sent).await {
                Ok(()) => {
                    self.goes_on(step, &sent.name, true, "from the orchestrator").await;
                    return Ok(true);
                }
                Err(Unusable::Fetch(error @ ApiError::Conflict { .. })) => return Err(error),
                Err(Unusable::Fetch(ApiError::Gone(why))) => {
                    tracing::warn!("{}: {} is gone from the orchestrator: {why}", self.key(), sent.name);
                    // Perhaps a newer one has taken its place. That it still names the same does not bring it back.
                    offered = self.offered_checkpoint().await?.filter(|again| *again != sent);
                }
                Err(error) => tracing::warn!("{}: {} is not used: {error}", self.key(), sent.name),
            }
        }
        self.carry_over(left).await
    }

    async fn carry_over(&self, left: Option<Left>) -> Result<bool, ApiError> {
        let Some(left) = left else {
            tracing::info!("{} begins at the beginning", self.key());
            return Ok(false);
        };
        let (step, name, is_sent) = (left.step, left.name.clone(), left.is_sent);
        let dir = self.dir.clone();
        match blocking(move || left.carry_over(&dir)).await {
            Ok(()) => {
                self.goes_on(step, &name, is_sent, "from an earlier attempt on this host").await;
                Ok(true)
            }
            Err(error) => {
                tracing::warn!("{} begins at the beginning, as {name} cannot be linked: {error}", self.key());
                Ok(false)
            }
        }
    }

    async fn goes_on(&self, step: u64, name: &str, is_sent: bool, whence: &str) {
        tracing::info!("{} goes on at step {step}, with {name} {whence}", self.key());
        self.update(true, |state| {
            state.resumed_from_step = Some(step);
            if is_sent {
                state.checkpoints.insert(name.to_owned());
            }
        })
        .await;
    }

    /// What the orchestrator has.
    async fn offered_checkpoint(&self) -> Result<Option<EarlierCheckpoint>, ApiError> {
        let what = format!("asking for earlier checkpoints of {}", self.key());
        match until_answered(&self.context.online, &what, async || self.api.earlier_checkpoint().await).await {
            Ok(found) => Ok((!found.files.is_empty()).then_some(found)),
            Err(error @ ApiError::Conflict { .. }) => Err(error),
            Err(error) => {
                tracing::warn!("{what}: {error}");
                Ok(None)
            }
        }
    }

    /// Fetches all files aside, and moves them into place together. An agent that starts again goes on with it.
    async fn fetch_checkpoint(&self, sent: &EarlierCheckpoint) -> Result<(), Unusable> {
        check(sent)?;
        let (aside, place) = (self.dir.join(ASIDE), self.dir.output().join(&sent.name));
        if place.is_dir() {
            return Ok(());
        }
        let bytes = sent.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size_bytes));
        self.has_room_for(bytes).await?;
        tracing::info!("{}: fetching {} ({} files, {bytes} bytes)", self.key(), sent.name, sent.files.len());
        let fetched = async {
            for file in &sent.files {
                self.fetch_file(file, &aside.join(&file.path)).await?;
            }
            tokio::fs::rename(aside.join(&sent.name), place).await.map_err(Unusable::from)
        };
        let fetched = fetched.await;
        // It would only be in the way.
        let _ = tokio::fs::remove_dir_all(&aside).await;
        fetched
    }

    /// It is fetched into what a job may fill, and not beyond. What a broken download has left counts twice.
    async fn has_room_for(&self, bytes: u64) -> Result<(), Unusable> {
        let (dir, keep) = (self.dir.path().to_owned(), self.context.config.keep_free);
        let usable = blocking(move || Ok(space(&dir).map(|space| space.free.saturating_sub(keep.bytes(space.total)))));
        match usable.await? {
            Some(usable) if bytes > usable => Err(Unusable::NoRoom { size: gib(bytes), usable: gib(usable) }),
            _ => Ok(()),
        }
    }

    async fn fetch_file(&self, file: &CheckpointFile, path: &Path) -> Result<(), Unusable> {
        if let Some(parent) = path.parent() {
            tokio::fs::create_dir_all(parent).await?;
        }
        let what = format!("fetching {} for {}", file.path, self.key());
        for _ in 0..TRIES {
            let mut heard = Instant::now();
            let append = async || self.append(file, path, &mut heard).await;
            until_answered(&self.context.online, &what, append).await?;
            let whole = path.to_owned();
            let (size, sha256) = blocking(move || digest(std::fs::File::open(whole)?, || true)).await?;
            if size == file.size_bytes && sha256.eq_ignore_ascii_case(&file.sha256) {
                return Ok(());
            }
            tokio::fs::remove_file(path).await?;
        }
        Err(Unusable::Damaged(file.path.clone()))
    }

    /// Adds to what is there of a file, until all of it is.
    async fn append(&self, file: &CheckpointFile, path: &Path, heard: &mut Instant) -> Result<(), ApiError> {
        let disk =
            |error: io::Error| ApiError::Rejected { status: 507, detail: format!("{}: {error}", path.display()) };
        let mut part = File::options().append(true).create(true).open(path).await.map_err(disk)?;
        let mut there = part.metadata().await.map_err(disk)?.len();
        if there == file.size_bytes {
            return Ok(());
        }
        if there > file.size_bytes {
            part.set_len(0).await.map_err(disk)?;
            there = 0;
        }
        let given_up = heard.elapsed() > PATIENCE;
        let patient = |error: ApiError| match error {
            ApiError::Transient { sentence, .. } if given_up => ApiError::Rejected { status: 504, detail: sentence },
            error => error,
        };
        let mut answer = self.api.earlier_file(&file.path, there).await.map_err(patient)?;
        if there > 0 && answer.status() != StatusCode::PARTIAL_CONTENT {
            part.set_len(0).await.map_err(disk)?;
            there = 0;
        }
        while there < file.size_bytes {
            let broken = |why: &str| patient(ApiError::transient(format!("the download broke off at {there}: {why}")));
            let chunk = match tokio::time::timeout(SILENCE, answer.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Err(broken("it ended")),
                Ok(Err(error)) => return Err(broken(&error.to_string())),
                Err(_) => return Err(broken("nothing came")),
            };
            // No more than was announced; whether it is the file, its digest says.
            let room = usize::try_from(file.size_bytes - there).unwrap_or(usize::MAX);
            let chunk = &chunk[..chunk.len().min(room)];
            part.write_all(chunk).await.map_err(disk)?;
            there += chunk.len() as u64;
            *heard = Instant::now();
        }
        part.flush().await.map_err(disk)
    }
}

/// Whether its files can only land in the checkpoint's own directory.
fn check(sent: &EarlierCheckpoint) -> Result<(), Unusable> {
    let unusable = |name: &str| Unusable::Name(name.chars().take(100).collect());
    if !is_plain(&sent.name) || sent.name.contains('/') {
        return Err(unusable(&sent.name));
    }
    let inside = format!("{}/", sent.name);
    let mut seen = BTreeSet::new();
    let bad = sent
        .files
        .iter()
        .find(|file| !is_plain(&file.path) || !file.path.starts_with(&inside) || !seen.insert(file.path.as_str()));
    bad.map_or(Ok(()), |file| Err(unusable(&file.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, paths: &[&str]) -> bool {
        let file = |path: &&str| CheckpointFile { path: (*path).to_owned(), size_bytes: 0, sha256: String::new() };
        let sent = EarlierCheckpoint { name: name.to_owned(), files: paths.iter().map(file).collect(), attempt: None };
        check(&sent).is_ok()
    }

    #[test]
    fn files_stay_in_their_checkpoint() {
        assert!(checked("checkpoint-5", &["checkpoint-5/a", "checkpoint-5/sub/b"]));
        for (name, paths) in [
            ("checkpoint-5", &["checkpoint-6/a"][..]),
            ("checkpoint-5", &["checkpoint-5/../../x"]),
            ("checkpoint-5", &["/etc/x"]),
            ("checkpoint-5", &["checkpoint-5"]),
            ("checkpoint-5", &["checkpoint-5/a", "checkpoint-5/a"]),
            ("..", &["../a"]),
            ("a/b", &["a/b/c"]),
            ("", &["/a"]),
        ] {
            assert!(!checked(name, paths), "{name} {paths:?}");
        }
    }
}
