//! Uploads the trainer's output. It is read from the file, so that nothing here can block the trainer.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::protocol::agents::LogAck;
use app::threads::run_io;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{AttemptRunner, file_size};
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::files::AttemptDir;
use crate::worker::secret::mask::{Mask, TailState};

/// Maximum size of a request.
const MAX_CHUNK_BYTES: usize = 256 * 1024;
/// The orchestrator has no space for the marker of a smaller gap.
const MIN_GAP_BYTES: u64 = 4 * 1024;
/// If more than this is pending, the next request is sent immediately.
const FLUSH_THRESHOLD_BYTES: u64 = 64 * 1024;
/// Otherwise requests are sent this often.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// How often the acknowledged offset is saved; the orchestrator stores it too.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// A log that has not grown for this long is idle: a value that a line break interrupts arrives in one write.
const QUIET_AFTER: Duration = Duration::from_secs(2);

impl AttemptRunner {
    /// Runs until all of the log is delivered after the end.
    pub(super) async fn upload_log(&self, mut done: watch::Receiver<bool>) {
        let path = self.dir.log_path();
        let mut offset = self.state().log_acked;
        let (mut saved_at, mut known_length, mut grown_at) = (Instant::now(), 0, Instant::now());
        loop {
            // Order matters: nothing is added after the end.
            let ended = *done.borrow();
            let length = file_size(path.clone()).await;
            if known_length != length {
                (known_length, grown_at) = (length, Instant::now());
            }
            if offset < length {
                let tail = match grown_at.elapsed() {
                    _ if ended => TailState::Complete,
                    idle_time if idle_time > QUIET_AFTER => TailState::Quiet,
                    _ => TailState::Growing,
                };
                match self.send_chunk(offset, tail).await {
                    Ok(durable) if durable > offset => offset = durable.min(length),
                    Ok(durable) => {
                        // The server has no more than before, or less: it needs time.
                        offset = durable;
                        tokio::time::sleep(SAVE_INTERVAL).await;
                    }
                    Err(error) => {
                        self.handle_error("uploading its log", &error);
                        return;
                    }
                }
                if saved_at.elapsed() > SAVE_INTERVAL {
                    self.update(false, |state| state.log_acked = offset).await;
                    saved_at = Instant::now();
                }
                if ended || length - offset > FLUSH_THRESHOLD_BYTES {
                    continue;
                }
            } else if ended {
                break;
            }
            let _ = tokio::time::timeout(FLUSH_INTERVAL, done.wait_for(|done| *done)).await;
        }
        // Saved with the final report.
        self.state().log_acked = offset;
    }

    /// Sends what follows an offset. Returns how many bytes the orchestrator then has.
    async fn send_chunk(&self, offset: u64, tail: TailState) -> Result<u64, OrchestratorError> {
        let (secrets, dir) = (Arc::clone(self.job_secrets()), self.dir.clone());
        let chunk = match run_io(move || MaskedChunk::read(&dir, offset, &secrets.mask, tail)).await {
            // Possibly the beginning of a secret: wait for the rest.
            Ok(chunk) if chunk.bytes.is_empty() => return Ok(offset),
            Ok(chunk) => chunk,
            // Nothing more follows, and the end must be reported.
            Err(error) if tail == TailState::Complete => {
                return Err(OrchestratorError::InvalidResponse(format!(
                    "it cannot be read ({error}), so the rest is not uploaded"
                )));
            }
            Err(error) => {
                tracing::warn!("{}: cannot read its log: {error}", self.key());
                return Ok(offset);
            }
        };
        let operation = format!("uploading the log of {}", self.key());
        let dropped = chunk.offset - offset;
        if dropped > 0 {
            tracing::warn!(
                "{}: dropped {dropped} bytes of its log, because the disk has no space for more",
                self.key()
            );
        }
        let send = async || self.api.upload_log(chunk.offset, dropped, chunk.bytes.clone()).await;
        match retry_until_answered(&self.context.reconnect_signal, &operation, send).await {
            Ok(LogAck { durable }) => Ok(durable),
            // The server has less (a restored backup) or more (a response was lost). If it has exactly what was
            // expected but rejects the gap, retrying would never make progress.
            Err(OrchestratorError::Conflict { durable: Some(durable), code, .. })
                if code == "log_gap" && (dropped == 0 || durable != offset) =>
            {
                Ok(durable)
            }
            Err(error @ OrchestratorError::Conflict { .. }) if dropped > 0 && is_gap(&error) => {
                Err(OrchestratorError::InvalidResponse(format!(
                    "the orchestrator rejects a log with a gap ({error}): the rest is not uploaded"
                )))
            }
            Err(error) => Err(error),
        }
    }
}

fn is_gap(error: &OrchestratorError) -> bool {
    matches!(error, OrchestratorError::Conflict { code, .. } if code == "log_gap")
}

/// A chunk of the log, with secrets masked.
struct MaskedChunk {
    /// Offset of its first byte: as requested, or after a dropped part.
    offset: u64,
    bytes: Bytes,
}

impl MaskedChunk {
    /// Reads what follows an offset.
    fn read(dir: &AttemptDir, offset: u64, mask: &Mask, tail: TailState) -> std::io::Result<Self> {
        let read = |from| read_chunk(&dir.log_path(), from, mask, tail);
        Self::read_with(
            offset,
            |floor| end_of_partial_secret(&dir.log_path(), floor, mask),
            read,
            || dir.truncation_offsets().log,
        )
    }

    /// The truncation offset is read after the data, so that a part dropped in between is not taken for output.
    fn read_with(
        offset: u64,
        secret_end: impl Fn(u64) -> std::io::Result<u64>,
        read: impl Fn(u64) -> std::io::Result<Bytes>,
        floor: impl Fn() -> u64,
    ) -> std::io::Result<Self> {
        let mut from = offset;
        loop {
            let bytes = read(from)?;
            let floor = floor();
            if from >= floor {
                return Ok(Self { offset: from, bytes });
            }
            // If truncation has cut a secret in two, no mask recognizes the rest of it.
            from = secret_end(floor)?.max(offset + MIN_GAP_BYTES);
        }
    }
}

/// The offset at which the rest of a secret that was cut at `offset` has certainly ended.
fn end_of_partial_secret(path: &Path, offset: u64, mask: &Mask) -> std::io::Result<u64> {
    let mut bytes = vec![0; mask.context_bytes()];
    let count = File::open(path)?.read_at(&mut bytes, offset)?;
    Ok(offset + mask.partial_prefix_len(&bytes[..count]) as u64)
}

/// Reads what follows an offset, with secrets masked.
fn read_chunk(path: &Path, offset: u64, mask: &Mask, tail: TailState) -> std::io::Result<Bytes> {
    let file = File::open(path)?;
    let start = offset.saturating_sub(mask.context_bytes() as u64);
    let from = usize::try_from(offset - start).unwrap_or_default();
    let mut window = vec![0; from + MAX_CHUNK_BYTES + mask.context_bytes()];
    let count = file.read_at(&mut window, start)?;
    let tail = if count < window.len() { tail } else { TailState::Complete };
    window.truncate(count);
    Ok(mask.mask_window(window, from, MAX_CHUNK_BYTES, tail).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::files::TruncationOffsets;

    #[test]
    fn dropped_part_is_skipped_with_the_secret_it_cuts() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let mask = Mask::from_values(["hf_abcdefgh"].into_iter());
        // The truncation offset is in the middle of a secret; another follows soon after it.
        let text = |words: &str| [&[0; 8_192], words.as_bytes(), &[b'.'; 8_192]].concat();
        std::fs::write(dir.log_path(), text("efgh and hf_abcdefgh, step 7\n"))?;
        dir.write_json("log.json", &TruncationOffsets { log: 8_192, ..TruncationOffsets::default() })?;
        let masked = text("efgh and ***********, step 7\n");
        // The longest encoding, with the maximum of escape sequences; the line break does not count.
        let partial_length = 2 * "hf_abcdefgh".len() - 1 + 32 + 1;
        // A gap has space for its marker, however little was dropped.
        for (offset, from) in [(0, 8_192 + partial_length), (3, 8_192 + partial_length), (8_190, 8_190 + 4_096)] {
            let chunk = MaskedChunk::read(&dir, offset, &mask, TailState::Complete)?;
            assert_eq!((chunk.offset, &chunk.bytes[..]), (from as u64, &masked[from..]), "from {offset} on");
        }
        // A reader beyond the truncation offset continues.
        assert_eq!(MaskedChunk::read(&dir, 8_230, &mask, TailState::Complete)?.offset, 8_230);
        Ok(())
    }

    #[test]
    fn hole_punched_during_a_read_is_not_output() -> std::io::Result<()> {
        let floor = std::cell::Cell::new(0);
        let read = |from| {
            // The file is truncated twice during the read.
            floor.set(if from < 10_000 { from + 5_000 } else { floor.get() });
            Ok(Bytes::from_static(if from < 10_000 { b"\0\0\0" } else { b"end" }))
        };
        let chunk = MaskedChunk::read_with(0, |floor| Ok(floor + 3), read, || floor.get())?;
        assert_eq!((chunk.offset, &chunk.bytes[..]), (10_006, &b"end"[..]));
        Ok(())
    }
}
