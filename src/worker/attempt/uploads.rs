//! Decides which of the trainer's files are uploaded, and when.

use std::collections::HashSet;
use std::time::Duration;

use app::protocol::agents::CheckpointFile;
use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::artifacts::checkpoints::{CompletedCheckpoint, is_checkpoint_path};
use app::protocol::status::ArtifactKind;
use app::threads::run_io;
use tokio::sync::watch;

use super::AttemptRunner;
use super::checkpoint_events::CheckpointEventReader;
use super::chunked_upload::FileUploadError;
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::artifacts::checkpoints::{self, LocalCheckpoint, TrainerState};
use crate::worker::artifacts::{self, Artifact};
use crate::worker::clock;
use crate::worker::files::{AttemptExit, StopCause, UploadedFile};

/// How often new files are searched.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// A sample that has not changed for this long is complete, in ms.
const STABLE_AFTER_MS: i64 = 1_500;
/// How often a checkpoint is sent if the orchestrator misses one of its files.
const MAX_CHECKPOINT_TRIES: u32 = 3;
/// How long a stopping host still uploads the last checkpoint.
const FINAL_UPLOAD_TIMEOUT: Duration = Duration::from_secs(20);

impl AttemptRunner {
    /// Uploads samples and checkpoints as they appear; the rest follows at the end.
    pub(super) async fn upload_files(&self, done: watch::Receiver<bool>) {
        let mut ended = done.clone();
        let checkpoints = async {
            // A large file would delay the end. What has arrived counts, and the rest follows.
            tokio::select! {
                _ = ended.wait_for(|done| *done) => {}
                never = self.upload_checkpoints() => match never {},
            }
        };
        tokio::join!(self.upload_samples(done), checkpoints);
    }

    async fn upload_samples(&self, mut done: watch::Receiver<bool>) {
        let mut rejected = HashSet::new();
        while !*done.borrow() {
            for artifact in self.pending_artifacts().await {
                let age = clock::now().0 - artifact.file.modified_ms;
                let is_complete_sample = artifact.kind == ArtifactKind::Sample && age > STABLE_AFTER_MS;
                if is_complete_sample
                    && !rejected.contains(&artifact.file.path)
                    && self.upload_file(&artifact).await.is_err()
                {
                    rejected.insert(artifact.file.path);
                }
                if *done.borrow() {
                    return;
                }
            }
            let _ = tokio::time::timeout(SCAN_INTERVAL, done.wait_for(|done| *done)).await;
        }
    }

    async fn upload_checkpoints(&self) -> std::convert::Infallible {
        if self.spec.offer.checkpoints == CheckpointPolicy::None {
            return std::future::pending().await;
        }
        let mut events = CheckpointEventReader::default();
        let mut rejected = HashSet::new();
        loop {
            self.read_events(&mut events).await;
            let pending = self.pending_checkpoints(&events, TrainerState::Running(clock::now().0)).await;
            // One at a time: meanwhile there may be a newer one.
            if let Some(checkpoint) = pending.into_iter().find(|checkpoint| !rejected.contains(&checkpoint.name))
                && let Err(error) = self.upload_checkpoint(&checkpoint).await
            {
                tracing::info!("{}: {} was not uploaded: {error}", self.key(), checkpoint.name);
                rejected.insert(checkpoint.name);
            }
            tokio::time::sleep(SCAN_INTERVAL).await;
        }
    }

    /// Uploads the remaining files after the end. Returns a message for each file that the orchestrator rejects.
    pub(super) async fn upload_final_files(&self, exit: &AttemptExit) -> Vec<String> {
        match exit.stopped {
            None => self.upload_remaining_files(exit).await,
            // This host is leaving: uploads what another one can resume from, if there is time.
            Some(StopCause::Requeue) => {
                let sent = tokio::time::timeout(FINAL_UPLOAD_TIMEOUT, self.upload_final_checkpoints(exit)).await;
                sent.unwrap_or_else(|_| vec!["no time was left to upload the last checkpoint".to_owned()])
            }
            // Without a connection the end cannot be reported before either; if the job has moved on, it is refused.
            Some(StopCause::Lease) => self.upload_final_checkpoints(exit).await,
            Some(StopCause::Disk | StopCause::Cancelled | StopCause::Superseded) => Vec::new(),
        }
    }

    async fn upload_remaining_files(&self, exit: &AttemptExit) -> Vec<String> {
        let mut rejected = Vec::new();
        for artifact in self.pending_artifacts().await {
            if is_checkpoint_path(&artifact.file.path) {
                continue;
            }
            if let Err(error) = self.upload_file(&artifact).await {
                rejected.push(format!("{} was not stored: {error}", artifact.file.path));
            }
        }
        rejected.extend(self.upload_final_checkpoints(exit).await);
        rejected
    }

    /// Uploads the checkpoints that are missing after the end.
    async fn upload_final_checkpoints(&self, exit: &AttemptExit) -> Vec<String> {
        let mut events = CheckpointEventReader::default();
        self.read_events(&mut events).await;
        let dir = self.dir.clone();
        let last_activity_ms = run_io(move || Ok(dir.last_activity_ms())).await.unwrap_or_default();
        let trainer = TrainerState::from_exit(exit, last_activity_ms);
        let mut rejected = Vec::new();
        for checkpoint in self.pending_checkpoints(&events, trainer).await {
            if let Err(error) = self.upload_checkpoint(&checkpoint).await {
                rejected.push(format!("{} was not stored: {error}", checkpoint.name));
            }
        }
        rejected
    }

    /// Complete checkpoints to upload, the most useful one first.
    async fn pending_checkpoints(&self, events: &CheckpointEventReader, trainer: TrainerState) -> Vec<LocalCheckpoint> {
        let mut found = checkpoints::group_by_step(self.list_output().await);
        let complete = checkpoints::complete_steps(&found, &events.reported, trainer);
        let sent = self.state().checkpoints.clone();
        let pending = checkpoints::pending_uploads(&found, &complete, self.spec.offer.checkpoints, &sent);
        pending.into_iter().filter_map(|step| found.remove(&step)).collect()
    }

    /// Uploads all missing files of a checkpoint, and reports it as complete.
    async fn upload_checkpoint(&self, checkpoint: &LocalCheckpoint) -> Result<(), FileUploadError> {
        let operation = format!("reporting {} of {} as complete", checkpoint.name, self.key());
        let mut tries = 0;
        loop {
            tries += 1;
            for artifact in &checkpoint.files {
                if !self.is_uploaded(artifact) {
                    self.upload_file(artifact).await?;
                }
            }
            let manifest = self.checkpoint_manifest(checkpoint);
            let report = async || self.api.complete_checkpoint(&manifest).await;
            let error = match retry_until_answered(&self.context.reconnect_signal, &operation, report).await {
                Ok(()) => break,
                Err(error) => error,
            };
            match &error {
                OrchestratorError::Conflict { code, path, .. } if code == "checkpoint_incomplete" => {
                    if let Some(path) = path {
                        self.persisted.forget_uploaded(path).await;
                    }
                    if tries < MAX_CHECKPOINT_TRIES {
                        continue;
                    }
                }
                _ => self.handle_error(&operation, &error),
            }
            return Err(error.into());
        }
        tracing::info!("{}: {} is stored at the orchestrator", self.key(), checkpoint.name);
        self.update(false, |state| state.checkpoints.extend([checkpoint.name.clone()])).await;
        Ok(())
    }

    /// The checkpoint with its files as they were sent.
    fn checkpoint_manifest(&self, checkpoint: &LocalCheckpoint) -> CompletedCheckpoint {
        let sent = self.persisted.uploaded_files();
        let file = |uploaded: &UploadedFile| CheckpointFile {
            path: uploaded.path.clone(),
            size_bytes: uploaded.size,
            sha256: uploaded.sha256.clone(),
        };
        let files = checkpoint.files.iter().filter_map(|artifact| sent.get(&artifact.file.path)).map(file).collect();
        CompletedCheckpoint { name: checkpoint.name.clone(), files }
    }

    fn is_uploaded(&self, artifact: &Artifact) -> bool {
        self.persisted.uploaded_files().is_up_to_date(&artifact.file)
    }

    /// Artifacts that are not uploaded yet.
    async fn pending_artifacts(&self) -> Vec<Artifact> {
        let mut found = self.list_output().await;
        let sent = self.persisted.uploaded_files();
        found.retain(|artifact| !sent.is_up_to_date(&artifact.file));
        found
    }

    async fn list_output(&self) -> Vec<Artifact> {
        let output = self.dir.output_dir();
        let sent = self.persisted.uploaded_files();
        let find = move || {
            let mut found = artifacts::list(&output)?;
            let is_new = |artifact: &Artifact| !sent.contains(&artifact.file);
            let from_events = |artifact: &Artifact| artifact.file.path.starts_with(artifacts::EVENT_MEDIA_PREFIX);
            // Uploaded files are not compared again.
            if found.iter().any(|artifact| from_events(artifact) && is_new(artifact))
                && let Err(error) = artifacts::duplicates::remove_duplicates(&output, &mut found)
            {
                tracing::debug!("cannot compare samples: {error}");
            }
            Ok(found)
        };
        match run_io(find).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!("{}: cannot list its output: {error}", self.key());
                Vec::new()
            }
        }
    }
}
