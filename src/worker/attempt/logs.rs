//! The trainer's output on its way to the orchestrator: read from the file, so that nothing here can hold up the trainer.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use app::protocol::worker::LogAck;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};

/// The largest request.
const CHUNK: usize = 256 * 1024;
/// With more than this waiting, the next request goes at once.
const PROMPT: u64 = 64 * 1024;
/// Otherwise so often.
const PERIOD: Duration = Duration::from_millis(250);
/// How often the acknowledged offset is written down; the orchestrator knows it too.
const SAVE: Duration = Duration::from_secs(1);

impl Attempt {
    /// Until all of it is there, after the end.
    pub(super) async fn pump_log(&self, mut done: watch::Receiver<bool>) {
        let path = self.dir.log();
        let mut offset = self.state().log_acked;
        let mut saved = Instant::now();
        loop {
            // In this order: after the end nothing is added.
            let ended = *done.borrow();
            let length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            if offset < length {
                match self.send_chunk(path.clone(), offset).await {
                    Ok(durable) if durable > offset => offset = durable.min(length),
                    Ok(durable) => {
                        // It has no more than before, or less: whatever is wrong there needs time.
                        offset = durable;
                        tokio::time::sleep(SAVE).await;
                    }
                    Err(error) => {
                        self.judge("sending its log", &error);
                        return;
                    }
                }
                if saved.elapsed() > SAVE {
                    self.update(false, |state| state.log_acked = offset).await;
                    saved = Instant::now();
                }
                if ended || length - offset > PROMPT {
                    continue;
                }
            } else if ended {
                break;
            }
            let _ = tokio::time::timeout(PERIOD, done.wait_for(|done| *done)).await;
        }
        self.update(false, |state| state.log_acked = offset).await;
    }

    /// Sends what follows an offset. Answers with how much the orchestrator then has.
    async fn send_chunk(&self, path: PathBuf, offset: u64) -> Result<u64, ApiError> {
        let bytes = match blocking(move || read_chunk(path, offset)).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!("{}: its log cannot be read: {error}", self.key());
                return Ok(offset);
            }
        };
        let what = format!("sending the log of {}", self.key());
        let sent =
            until_answered(&self.context.online, &what, async || self.api.logs(offset, bytes.clone()).await).await;
        match sent {
            Ok(LogAck { durable }) => Ok(durable),
            // It has less (a restored backup), or more (an answer that got lost).
            Err(ApiError::Conflict { durable: Some(durable), code, .. }) if code == "log_gap" => Ok(durable),
            Err(error) => Err(error),
        }
    }
}

fn read_chunk(path: PathBuf, offset: u64) -> std::io::Result<Bytes> {
    let file = File::open(path)?;
    let mut bytes = vec![0; CHUNK];
    let count = file.read_at(&mut bytes, offset)?;
    bytes.truncate(count);
    Ok(bytes.into())
}
