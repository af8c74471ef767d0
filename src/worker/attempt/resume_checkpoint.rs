//! Where the trainer resumes: from a checkpoint that an earlier attempt left here, or from one at the orchestrator.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use app::protocol::agents::{CheckpointFile, ResumeCheckpoint};
use app::protocol::artifacts::checkpoints::checkpoint_step;
use app::threads::run_io;
use reqwest::StatusCode;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::AttemptRunner;
use super::chunked_upload::digest;
use super::previous_checkpoint::{self, PreviousCheckpoint};
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::bundle::is_safe_relative_path;
use crate::worker::filesystem::format_gib;
use crate::worker::filesystem::read_disk_space;

/// Where files are stored until all of them have arrived.
const INCOMING_DIR: &str = "incoming";
/// A download without data for this long is aborted.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// A download without progress for this long, over all tries, is given up: the saved training state is worth this wait.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_hours(1);
/// How often a damaged file is fetched.
const MAX_TRIES: u32 = 2;
/// How many checkpoints are tried if the offered one was deleted.
const MAX_CANDIDATES: u32 = 3;

#[derive(Debug, thiserror::Error)]
enum ResumeError {
    #[error("the orchestrator names {0:?}, which is no file of a checkpoint")]
    InvalidName(String),
    #[error("it needs {size}, but the worker's disk has only {usable} beyond --keep-free")]
    DiskFull { size: String, usable: String },
    #[error("{0} arrived damaged")]
    Damaged(String),
    #[error("{0}")]
    Fetch(#[from] OrchestratorError),
    #[error("cannot write it: {0}")]
    Disk(#[from] io::Error),
}

impl AttemptRunner {
    /// Copies the newest checkpoint of earlier attempts into the output directory. Returns whether there is one.
    ///
    /// # Errors
    /// If the attempt is superseded.
    pub(super) async fn restore_checkpoint(&self) -> Result<bool, OrchestratorError> {
        let (dir, key) = (self.dir.clone(), self.key().clone());
        let local = run_io(move || previous_checkpoint::find_previous(&dir, &key)).await.unwrap_or_else(|error| {
            tracing::warn!("{}: cannot search earlier attempts on this host: {error}", self.key());
            None
        });
        let is_newer = |step: u64| local.as_ref().is_none_or(|local| step > local.step);
        let mut offered = self.fetch_offered_checkpoint().await?;
        for _ in 0..MAX_CANDIDATES {
            let Some(checkpoint) = offered.take() else { break };
            let Some(step) = checkpoint_step(&checkpoint.name).filter(|step| is_newer(*step)) else { break };
            match self.fetch_checkpoint(&checkpoint).await {
                Ok(()) => {
                    self.record_resume(step, &checkpoint.name, true, "from the orchestrator").await;
                    return Ok(true);
                }
                Err(ResumeError::Fetch(error @ OrchestratorError::Conflict { .. })) => return Err(error),
                Err(ResumeError::Fetch(OrchestratorError::NotFound(reason))) => {
                    tracing::warn!("{}: {} was deleted at the orchestrator: {reason}", self.key(), checkpoint.name);
                    // A newer one may have replaced it. If the server still names the same one, it is not tried again.
                    offered = self.fetch_offered_checkpoint().await?.filter(|next| *next != checkpoint);
                }
                Err(error) => tracing::warn!("{}: not using {}: {error}", self.key(), checkpoint.name),
            }
        }
        self.reuse_local_checkpoint(local).await
    }

    async fn reuse_local_checkpoint(&self, checkpoint: Option<PreviousCheckpoint>) -> Result<bool, OrchestratorError> {
        let Some(previous) = checkpoint else {
            tracing::info!("{} starts from the beginning", self.key());
            return Ok(false);
        };
        let (step, name, is_sent) = (previous.step, previous.name.clone(), previous.is_sent);
        let dir = self.dir.clone();
        match run_io(move || previous.link_into(&dir)).await {
            Ok(()) => {
                self.record_resume(step, &name, is_sent, "from an earlier attempt on this host").await;
                Ok(true)
            }
            Err(error) => {
                tracing::warn!("{} starts from the beginning, because {name} cannot be linked: {error}", self.key());
                Ok(false)
            }
        }
    }

    async fn record_resume(&self, step: u64, name: &str, is_sent: bool, origin: &str) {
        tracing::info!("{} resumes at step {step}, with {name} {origin}", self.key());
        self.update(true, |state| {
            state.resumed_from_step = Some(step);
            if is_sent {
                state.checkpoints.insert(name.to_owned());
            }
        })
        .await;
    }

    /// The checkpoint that the orchestrator has.
    async fn fetch_offered_checkpoint(&self) -> Result<Option<ResumeCheckpoint>, OrchestratorError> {
        if !self.spec.offer.may_have_checkpoint {
            return Ok(None);
        }
        let operation = format!("asking for earlier checkpoints of {}", self.key());
        match retry_until_answered(&self.context.reconnect_signal, &operation, async || {
            self.api.fetch_resume_checkpoint().await
        })
        .await
        {
            Ok(found) => Ok((!found.files.is_empty()).then_some(found)),
            Err(error @ OrchestratorError::Conflict { .. }) => Err(error),
            Err(error) => {
                tracing::warn!("{operation}: {error}");
                Ok(None)
            }
        }
    }

    /// Downloads all files to a separate directory, then moves them into place together. A restarted agent resumes the
    /// download.
    async fn fetch_checkpoint(&self, checkpoint: &ResumeCheckpoint) -> Result<(), ResumeError> {
        validate_paths(checkpoint)?;
        let (download_dir, target) = (self.dir.join(INCOMING_DIR), self.dir.output_dir().join(&checkpoint.name));
        if target.is_dir() {
            return Ok(());
        }
        let bytes = checkpoint.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size_bytes));
        self.check_free_space(bytes).await?;
        tracing::info!(
            "{}: fetching {} ({} files, {bytes} bytes)",
            self.key(),
            checkpoint.name,
            checkpoint.files.len()
        );
        let fetched = async {
            for file in &checkpoint.files {
                self.fetch_file(file, &download_dir.join(&file.path)).await?;
            }
            tokio::fs::rename(download_dir.join(&checkpoint.name), target).await.map_err(ResumeError::from)
        };
        let fetched = fetched.await;
        // Removes a download that is not needed.
        let _ = tokio::fs::remove_dir_all(&download_dir).await;
        fetched
    }

    /// The download may only use space that a job may use. Bytes of a broken download count twice.
    async fn check_free_space(&self, bytes: u64) -> Result<(), ResumeError> {
        let (dir, min_free) = (self.dir.path().to_owned(), self.context.config.min_free_space);
        let usable = run_io(move || {
            Ok(read_disk_space(&dir).map(|space| space.free.saturating_sub(min_free.bytes(space.total))))
        });
        match usable.await? {
            Some(usable) if bytes > usable => {
                Err(ResumeError::DiskFull { size: format_gib(bytes), usable: format_gib(usable) })
            }
            _ => Ok(()),
        }
    }

    async fn fetch_file(&self, file: &CheckpointFile, path: &Path) -> Result<(), ResumeError> {
        if let Some(parent) = path.parent() {
            tokio::fs::create_dir_all(parent).await?;
        }
        let operation = format!("fetching {} for {}", file.path, self.key());
        for _ in 0..MAX_TRIES {
            let mut received_at = Instant::now();
            let append = async || self.resume_download(file, path, &mut received_at).await;
            retry_until_answered(&self.context.reconnect_signal, &operation, append).await?;
            let downloaded = path.to_owned();
            let (size, sha256) = run_io(move || digest(std::fs::File::open(downloaded)?, || true)).await?;
            if size == file.size_bytes && sha256.eq_ignore_ascii_case(&file.sha256) {
                return Ok(());
            }
            tokio::fs::remove_file(path).await?;
        }
        Err(ResumeError::Damaged(file.path.clone()))
    }

    /// Appends to a partial file until it is complete.
    async fn resume_download(
        &self,
        file: &CheckpointFile,
        path: &Path,
        received_at: &mut Instant,
    ) -> Result<(), OrchestratorError> {
        let disk_error = |error: io::Error| OrchestratorError::Rejected {
            status: 507,
            detail: format!("{}: {error}", path.display()),
        };
        let mut output = File::options().append(true).create(true).open(path).await.map_err(disk_error)?;
        let mut received = output.metadata().await.map_err(disk_error)?.len();
        if received == file.size_bytes {
            return Ok(());
        }
        if received > file.size_bytes {
            output.set_len(0).await.map_err(disk_error)?;
            received = 0;
        }
        let is_timed_out = received_at.elapsed() > DOWNLOAD_TIMEOUT;
        let give_up_after_timeout = |error: OrchestratorError| match error {
            OrchestratorError::Transient { detail, .. } if is_timed_out => {
                OrchestratorError::Rejected { status: 504, detail }
            }
            error => error,
        };
        let mut response =
            self.api.download_checkpoint_file(&file.path, received).await.map_err(give_up_after_timeout)?;
        if received > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            output.set_len(0).await.map_err(disk_error)?;
            received = 0;
        }
        while received < file.size_bytes {
            let interrupted = |reason: &str| {
                give_up_after_timeout(OrchestratorError::transient(format!(
                    "the download was interrupted at {received}: {reason}"
                )))
            };
            let chunk = match tokio::time::timeout(STALL_TIMEOUT, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Err(interrupted("connection closed")),
                Ok(Err(error)) => return Err(interrupted(&error.to_string())),
                Err(_) => return Err(interrupted("no data")),
            };
            // Reads no more than was announced; the digest verifies the content.
            let remaining = usize::try_from(file.size_bytes - received).unwrap_or(usize::MAX);
            let chunk = &chunk[..chunk.len().min(remaining)];
            output.write_all(chunk).await.map_err(disk_error)?;
            received += chunk.len() as u64;
            *received_at = Instant::now();
        }
        output.flush().await.map_err(disk_error)
    }
}

/// Whether all files are below the checkpoint's own directory.
fn validate_paths(checkpoint: &ResumeCheckpoint) -> Result<(), ResumeError> {
    let invalid_name = |name: &str| ResumeError::InvalidName(name.chars().take(100).collect());
    if !is_safe_relative_path(&checkpoint.name) || checkpoint.name.contains('/') {
        return Err(invalid_name(&checkpoint.name));
    }
    let prefix = format!("{}/", checkpoint.name);
    let mut paths = BTreeSet::new();
    let invalid_file = checkpoint.files.iter().find(|file| {
        !is_safe_relative_path(&file.path) || !file.path.starts_with(&prefix) || !paths.insert(file.path.as_str())
    });
    invalid_file.map_or(Ok(()), |file| Err(invalid_name(&file.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(name: &str, paths: &[&str]) -> bool {
        let file = |path: &&str| CheckpointFile { path: (*path).to_owned(), size_bytes: 0, sha256: String::new() };
        let checkpoint =
            ResumeCheckpoint { name: name.to_owned(), files: paths.iter().map(file).collect(), attempt: None };
        validate_paths(&checkpoint).is_ok()
    }

    #[test]
    fn paths_outside_the_checkpoint_are_rejected() {
        assert!(is_valid("checkpoint-5", &["checkpoint-5/a", "checkpoint-5/sub/b"]));
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
            assert!(!is_valid(name, paths), "{name} {paths:?}");
        }
    }
}
