//! The trainer's output on its way to the orchestrator: read from the file, so that nothing here can hold up the trainer.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::protocol::worker::LogAck;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Attempt, blocking, length};
use crate::api::{ApiError, until_answered};
use crate::files::AttemptDir;
use crate::secret::mask::{Mask, Tail};

/// The largest request.
const CHUNK: usize = 256 * 1024;
/// The orchestrator has no room for the mark of a smaller gap.
const LEAST_GAP: u64 = 4 * 1024;
/// With more than this waiting, the next request goes at once.
const PROMPT: u64 = 64 * 1024;
/// Otherwise so often.
const PERIOD: Duration = Duration::from_millis(250);
/// How often the acknowledged offset is written down; the orchestrator knows it too.
const SAVE: Duration = Duration::from_secs(1);
/// A log that has not grown for so long is quiet: a value that is cut by a line break comes in one write.
const QUIET: Duration = Duration::from_secs(2);

impl Attempt {
    /// Until all of it is there, after the end.
    pub(super) async fn pump_log(&self, mut done: watch::Receiver<bool>) {
        let path = self.dir.log();
        let mut offset = self.state().log_acked;
        let (mut saved, mut grown) = (Instant::now(), (0, Instant::now()));
        loop {
            // In this order: after the end nothing is added.
            let ended = *done.borrow();
            let length = length(path.clone()).await;
            if grown.0 != length {
                grown = (length, Instant::now());
            }
            if offset < length {
                let tail = match grown.1.elapsed() {
                    _ if ended => Tail::Known,
                    still if still > QUIET => Tail::Quiet,
                    _ => Tail::Growing,
                };
                match self.send_chunk(offset, tail).await {
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
    async fn send_chunk(&self, offset: u64, tail: Tail) -> Result<u64, ApiError> {
        let (given, dir) = (Arc::clone(self.given()), self.dir.clone());
        let piece = match blocking(move || Piece::read(&dir, offset, &given.mask, tail)).await {
            // Perhaps the beginning of a secret: the rest comes.
            Ok(piece) if piece.bytes.is_empty() => return Ok(offset),
            Ok(piece) => piece,
            // Nothing more comes, and the end has to be told.
            Err(error) if tail == Tail::Known => {
                return Err(ApiError::Answer(format!("it cannot be read ({error}), so the rest is not sent")));
            }
            Err(error) => {
                tracing::warn!("{}: its log cannot be read: {error}", self.key());
                return Ok(offset);
            }
        };
        let what = format!("sending the log of {}", self.key());
        let dropped = piece.from - offset;
        if dropped > 0 {
            tracing::warn!(
                "{}: {dropped} bytes of its log were given up, as the disk has room for no more",
                self.key()
            );
        }
        let send = async || self.api.logs(piece.from, dropped, piece.bytes.clone()).await;
        match until_answered(&self.context.online, &what, send).await {
            Ok(LogAck { durable }) => Ok(durable),
            // It has less (a restored backup), or more (an answer that got lost). But one that has what we took it to have,
            // and does not take the gap, would never go on.
            Err(ApiError::Conflict { durable: Some(durable), code, .. })
                if code == "log_gap" && (dropped == 0 || durable != offset) =>
            {
                Ok(durable)
            }
            Err(error @ ApiError::Conflict { .. }) if dropped > 0 && is_gap(&error) => Err(ApiError::Answer(format!(
                "the orchestrator takes no log with a gap ({error}): the rest is not sent"
            ))),
            Err(error) => Err(error),
        }
    }
}

fn is_gap(error: &ApiError) -> bool {
    matches!(error, ApiError::Conflict { code, .. } if code == "log_gap")
}

/// A piece of the log, without secrets.
struct Piece {
    /// Its first byte: where it was asked for, or behind what was given up.
    from: u64,
    bytes: Bytes,
}

impl Piece {
    /// Reads what follows an offset.
    fn read(dir: &AttemptDir, offset: u64, mask: &Mask, tail: Tail) -> std::io::Result<Self> {
        let read = |from| read_chunk(&dir.log(), from, mask, tail);
        Self::read_by(offset, |floor| behind_half(&dir.log(), floor, mask), read, || dir.floors().log)
    }

    /// What was given up is looked for after reading, so that what has become a hole in between is not taken for output.
    fn read_by(
        offset: u64,
        behind_half: impl Fn(u64) -> std::io::Result<u64>,
        read: impl Fn(u64) -> std::io::Result<Bytes>,
        floor: impl Fn() -> u64,
    ) -> std::io::Result<Self> {
        let mut from = offset;
        loop {
            let bytes = read(from)?;
            let floor = floor();
            if from >= floor {
                return Ok(Self { from, bytes });
            }
            // Of a secret that the floor has cut in two, no mask knows the second half.
            from = behind_half(floor)?.max(offset + LEAST_GAP);
        }
    }
}

/// Where the second half of a secret that ends behind an offset has ended for sure.
fn behind_half(path: &Path, offset: u64, mask: &Mask) -> std::io::Result<u64> {
    let mut bytes = vec![0; mask.reach()];
    let count = File::open(path)?.read_at(&mut bytes, offset)?;
    Ok(offset + mask.half(&bytes[..count]) as u64)
}

/// What follows an offset, without secrets.
fn read_chunk(path: &Path, offset: u64, mask: &Mask, tail: Tail) -> std::io::Result<Bytes> {
    let file = File::open(path)?;
    let start = offset.saturating_sub(mask.reach() as u64);
    let from = usize::try_from(offset - start).unwrap_or_default();
    let mut window = vec![0; from + CHUNK + mask.reach()];
    let count = file.read_at(&mut window, start)?;
    let tail = if count < window.len() { tail } else { Tail::Known };
    window.truncate(count);
    Ok(mask.piece(window, from, CHUNK, tail).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Floors;

    #[test]
    fn what_was_given_up_is_passed_over_with_the_secret_that_it_cuts() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let mask = Mask::of(["hf_abcdefgh"].into_iter());
        // The floor is in the middle of a secret; another comes soon after it.
        let text = |words: &str| [&[0; 8_192], words.as_bytes(), &[b'.'; 8_192]].concat();
        std::fs::write(dir.log(), text("efgh and hf_abcdefgh, step 7\n"))?;
        dir.write("log.json", &Floors { log: 8_192, ..Floors::default() })?;
        let hidden = text("efgh and ***********, step 7\n");
        // Of its longest spelling, with what a sequence may take, and the line break, which does not count.
        let half = 2 * "hf_abcdefgh".len() - 1 + 32 + 1;
        // A gap has room for its mark, however little was given up.
        for (offset, from) in [(0, 8_192 + half), (3, 8_192 + half), (8_190, 8_190 + 4_096)] {
            let piece = Piece::read(&dir, offset, &mask, Tail::Known)?;
            assert_eq!((piece.from, &piece.bytes[..]), (from as u64, &hidden[from..]), "from {offset} on");
        }
        // Whoever is behind the floor already reads on.
        assert_eq!(Piece::read(&dir, 8_230, &mask, Tail::Known)?.from, 8_230);
        Ok(())
    }

    #[test]
    fn what_becomes_a_hole_while_it_is_read_is_no_output() -> std::io::Result<()> {
        let floor = std::cell::Cell::new(0);
        let read = |from| {
            // Twice it is cut under the reader's hands.
            floor.set(if from < 10_000 { from + 5_000 } else { floor.get() });
            Ok(Bytes::from_static(if from < 10_000 { b"\0\0\0" } else { b"end" }))
        };
        let piece = Piece::read_by(0, |floor| Ok(floor + 3), read, || floor.get())?;
        assert_eq!((piece.from, &piece.bytes[..]), (10_006, &b"end"[..]));
        Ok(())
    }
}
