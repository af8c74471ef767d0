//! Files that the trainer made: which are sent when.

use std::collections::HashSet;
use std::time::Duration;

use app::protocol::checkpoints::WholeCheckpoint;
use app::protocol::dispatch::CheckpointPolicy;
use app::protocol::status::ArtifactKind;
use app::protocol::worker::CheckpointFile;
use tokio::sync::watch;

use super::pieces::Unsent;
use super::said::Events;
use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};
use crate::artifacts::checkpoints::{self, Checkpoint, Trainer};
use crate::artifacts::{self, Artifact};
use crate::clock;
use crate::files::{Exit, StopCause, Uploaded};

/// How often new files are looked for.
const PERIOD: Duration = Duration::from_secs(2);
/// A sample that has not changed for so long is finished, in ms.
const SETTLED_MS: i64 = 1_500;
/// How often a checkpoint is sent of which the orchestrator misses a file.
const TRIES: u32 = 3;
/// How long a host that was asked to leave still sends the last checkpoint.
const LEAVING: Duration = Duration::from_secs(20);

impl Attempt {
    /// Sends samples and checkpoints as they appear; the rest follows at the end.
    pub(super) async fn pump_files(&self, done: watch::Receiver<bool>) {
        let mut ended = done.clone();
        let checkpoints = async {
            // A large file would hold up the end; what has come of it counts, and the rest follows.
            tokio::select! {
                _ = ended.wait_for(|done| *done) => {}
                never = self.pump_checkpoints() => match never {},
            }
        };
        tokio::join!(self.pump_samples(done), checkpoints);
    }

    async fn pump_samples(&self, mut done: watch::Receiver<bool>) {
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

    async fn pump_checkpoints(&self) -> std::convert::Infallible {
        if self.spec.offer.checkpoints == CheckpointPolicy::None {
            return std::future::pending().await;
        }
        let mut events = Events::default();
        let mut refused = HashSet::new();
        loop {
            self.read_events(&mut events).await;
            let due = self.due_checkpoints(&events, Trainer::Runs(clock::now().0)).await;
            // One at a time: meanwhile there may be a newer one.
            if let Some(checkpoint) = due.into_iter().find(|checkpoint| !refused.contains(&checkpoint.name))
                && let Err(error) = self.send_checkpoint(&checkpoint).await
            {
                tracing::info!("{}: {} is not kept: {error}", self.key(), checkpoint.name);
                refused.insert(checkpoint.name);
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Sends what is to be kept after the end. Answers with a sentence for each file that the orchestrator does not take.
    pub(super) async fn last_files(&self, exit: &Exit) -> Vec<String> {
        match exit.stopped {
            None => self.send_files(exit).await,
            // This host leaves: what another one can go on from, if there is time.
            Some(StopCause::Requeue) => {
                let sent = tokio::time::timeout(LEAVING, self.send_checkpoints(exit)).await;
                sent.unwrap_or_else(|_| vec!["no time was left to send the last checkpoint".to_owned()])
            }
            Some(_) => Vec::new(),
        }
    }

    async fn send_files(&self, exit: &Exit) -> Vec<String> {
        let mut refused = Vec::new();
        for artifact in self.unsent().await {
            if artifacts::is_of_a_checkpoint(&artifact.file.path) {
                continue;
            }
            if let Err(error) = self.send_file(&artifact).await {
                refused.push(format!("{} was not stored: {error}", artifact.file.path));
            }
        }
        refused.extend(self.send_checkpoints(exit).await);
        refused
    }

    /// Those that are still missing after the end.
    async fn send_checkpoints(&self, exit: &Exit) -> Vec<String> {
        let mut events = Events::default();
        self.read_events(&mut events).await;
        let dir = self.dir.clone();
        let last_sign = blocking(move || Ok(dir.last_sign())).await.unwrap_or_default();
        let trainer = Trainer::after(exit, last_sign);
        let mut refused = Vec::new();
        for checkpoint in self.due_checkpoints(&events, trainer).await {
            if let Err(error) = self.send_checkpoint(&checkpoint).await {
                refused.push(format!("{} was not stored: {error}", checkpoint.name));
            }
        }
        refused
    }

    /// Checkpoints that are whole and to be sent, the most useful one first.
    async fn due_checkpoints(&self, events: &Events, trainer: Trainer) -> Vec<Checkpoint> {
        let mut found = checkpoints::among(self.output().await);
        let whole = checkpoints::whole(&found, &events.said, trainer);
        let sent = self.state().checkpoints.clone();
        let due = checkpoints::due(&found, &whole, self.spec.offer.checkpoints, &sent);
        due.into_iter().filter_map(|step| found.remove(&step)).collect()
    }

    /// Sends all files of a checkpoint that are not there, and says that it is whole.
    async fn send_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), Unsent> {
        let what = format!("saying that {} of {} is whole", checkpoint.name, self.key());
        let mut tries = 0;
        loop {
            tries += 1;
            for artifact in &checkpoint.files {
                if !self.is_sent(artifact) {
                    self.send_file(artifact).await?;
                }
            }
            let whole = self.described(checkpoint);
            let tell = async || self.api.checkpoint_is_whole(&whole).await;
            let error = match until_answered(&self.context.online, &what, tell).await {
                Ok(()) => break,
                Err(error) => error,
            };
            match &error {
                ApiError::Conflict { code, path, .. } if code == "checkpoint_incomplete" => {
                    if let Some(path) = path {
                        self.kept.misses(path).await;
                    }
                    if tries < TRIES {
                        continue;
                    }
                }
                _ => self.judge(&what, &error),
            }
            return Err(error.into());
        }
        tracing::info!("{}: {} is kept by the orchestrator", self.key(), checkpoint.name);
        self.update(false, |state| state.checkpoints.extend([checkpoint.name.clone()])).await;
        Ok(())
    }

    /// A checkpoint as its files were sent.
    fn described(&self, checkpoint: &Checkpoint) -> WholeCheckpoint {
        let sent = self.kept.sent();
        let file = |known: &Uploaded| CheckpointFile {
            path: known.path.clone(),
            size_bytes: known.size,
            sha256: known.sha256.clone(),
        };
        let files = checkpoint.files.iter().filter_map(|artifact| sent.get(&artifact.file.path)).map(file).collect();
        WholeCheckpoint { name: checkpoint.name.clone(), files }
    }

    fn is_sent(&self, artifact: &Artifact) -> bool {
        self.kept.sent().has(&artifact.file)
    }

    /// What is not sent yet.
    async fn unsent(&self) -> Vec<Artifact> {
        let mut found = self.output().await;
        let sent = self.kept.sent();
        found.retain(|artifact| !sent.has(&artifact.file));
        found
    }

    /// All that the trainer has made.
    async fn output(&self) -> Vec<Artifact> {
        let output = self.dir.output();
        let sent = self.kept.sent();
        let find = move || {
            let mut found = artifacts::list(&output)?;
            let is_new = |artifact: &Artifact| !sent.knows(&artifact.file);
            let from_events = |artifact: &Artifact| artifact.file.path.starts_with(artifacts::FROM_EVENTS);
            // What is sent is not compared again.
            if found.iter().any(|artifact| from_events(artifact) && is_new(artifact))
                && let Err(error) = artifacts::copies::drop_copies(&output, &mut found)
            {
                tracing::debug!("samples cannot be compared: {error}");
            }
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
}
