//! Logs: workers append, people read.

use std::sync::Arc;

use app::domain::ids::{Attempt, JobId};
use app::protocol::queue::LogChunk;
use app::protocol::topic::Topic;
use bytes::Bytes;
use futures_util::Stream;

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::reports::Subject;
use crate::files::gaps;
use crate::files::logs::{Appended, Chunk};

/// The most bytes that are read at once.
pub const MAX_PIECE: u32 = 1 << 20;

impl Core {
    /// Takes a piece of a log; returns how many bytes are on disk now.
    pub async fn append_log(self: &Arc<Self>, subject: &Subject, chunk: Chunk) -> Result<u64, Refusal> {
        if chunk.dropped.is_some() {
            check_gap(&chunk)?;
        }
        let attempt = self.check_attempt(subject).await?;
        self.need_room_to_run()?;
        let limit = self.policy.log_limit;
        if chunk.offset.saturating_add(chunk.bytes.len() as u64) > limit {
            return Err(Invalid::TooMuch { what: "bytes of a log (--log-max-size)", limit }.into());
        }
        match self.logs.append(&subject.job, attempt, chunk).await? {
            Appended::Gap(durable) => Err(Refusal::LogGap { durable }),
            Appended::TooManyGaps => Err(Invalid::TooMuch { what: "gaps in a log", limit: gaps::MOST as u64 }.into()),
            Appended::Durable(durable) => {
                self.hub.bump([Topic::Log(subject.job.clone())]);
                Ok(durable)
            }
        }
    }

    /// Reads a piece of a log: of the newest attempt if none is named, from its end if no offset is.
    pub async fn read_log(
        &self,
        job: &JobId,
        attempt: Option<Attempt>,
        offset: Option<u64>,
        limit: u32,
    ) -> Result<LogChunk, Refusal> {
        let attempt = self.attempt_of(job, attempt).await?;
        let limit = limit.clamp(1, MAX_PIECE);
        let piece = self.logs.read(job, attempt, offset, u64::from(limit)).await?;
        // Behind a gap a character may begin in what is missing; to leave its end out would look like another gap.
        let leading = if piece.after_gap { 0 } else { leading(&piece.bytes, piece.offset) };
        let bytes = &piece.bytes[leading..];
        let start = piece.offset + (piece.bytes.len() - bytes.len()) as u64;
        let whole = bytes.len() - trailing(bytes);
        // A piece of nothing but an unfinished character is passed on as it is, or a reader would never get past it.
        let bytes = if whole == 0 { bytes } else { &bytes[..whole] };
        let end = start + bytes.len() as u64;
        let is_all = end == piece.offset + piece.bytes.len() as u64;
        Ok(LogChunk {
            attempt,
            offset: start,
            next_offset: if is_all { piece.next } else { end },
            size: piece.size,
            text: String::from_utf8_lossy(bytes).into_owned(),
        })
    }

    /// All of a log, as it came; a gap is what its mark says.
    pub async fn whole_log(
        &self,
        job: &JobId,
        attempt: Attempt,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + 'static, Refusal> {
        Ok(self.logs.whole(job, attempt).await?)
    }

    /// Whether nothing more of an attempt's log can come: its job has ended, or goes on with a newer one.
    pub async fn attempt_is_over(&self, job: &JobId, attempt: Attempt) -> Result<bool, Refusal> {
        let job = self.read().await?.job(job).await?.ok_or_else(|| Refusal::NoJob(job.clone()))?;
        Ok(job.has_ended() || job.attempt != attempt)
    }

    /// The attempt that is meant: the newest if none is named.
    pub async fn attempt_of(&self, job: &JobId, attempt: Option<Attempt>) -> Result<Attempt, Refusal> {
        let newest = self.read().await?.job(job).await?.ok_or_else(|| Refusal::NoJob(job.clone()))?.attempt;
        match attempt {
            Some(attempt) if attempt.0 == 0 || attempt > newest => Err(Refusal::NoAttempt(attempt.0)),
            other => Ok(other.unwrap_or(newest)),
        }
    }
}

/// A gap leaves room for its mark.
fn check_gap(Chunk { offset, dropped, .. }: &Chunk) -> Result<(), Invalid> {
    if !(gaps::LEAST..=*offset).contains(&dropped.unwrap_or_default()) {
        return Err(Invalid::Range { field: "dropped", allowed: "at least 4096, and no more than `offset`" });
    }
    Ok(())
}

/// How many bytes at the start belong to a character that began before this piece.
fn leading(bytes: &[u8], offset: u64) -> usize {
    if offset == 0 { 0 } else { bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count() }
}

/// How many bytes at the end are a character that is not complete yet.
pub(super) fn trailing(bytes: &[u8]) -> usize {
    let Some(back) = bytes.iter().rev().take(4).position(|byte| !is_continuation(*byte)) else { return 0 };
    let wanted = match bytes[bytes.len() - 1 - back] {
        0xf0..=0xf7 => 4,
        0xe0..=0xef => 3,
        0xc0..=0xdf => 2,
        _ => 1,
    };
    if back + 1 < wanted { back + 1 } else { 0 }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_between_characters() {
        let euro = "a€".as_bytes();
        assert_eq!(trailing(euro), 0);
        assert_eq!(trailing(&euro[..3]), 2);
        assert_eq!(trailing(&euro[..2]), 1);
        assert_eq!(trailing(b"abc"), 0);
        assert_eq!(trailing(b""), 0);
        assert_eq!(trailing(&[0x80, 0x80, 0x80, 0x80]), 0);
        assert_eq!(leading(&euro[2..], 2), 2);
        assert_eq!(leading(&euro[1..], 1), 0);
        assert_eq!(leading(&euro[2..], 0), 0);
    }
}
