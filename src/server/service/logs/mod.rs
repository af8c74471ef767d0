//! Logs: workers append, users read.

mod job_logs;
pub(super) mod lines;
pub mod pattern;
mod rank_lines;
pub mod searches;

use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::ids::{AttemptNumber, JobId};
use app::protocol::jobs::LogChunk;
use app::protocol::topic::Topic;
use bytes::Bytes;
use futures_util::Stream;

use self::searches::LogSearchLimiter;
use super::error::{InvalidInput, ServiceError};
use crate::files::log_gaps;
use crate::files::logs::LogStore;
use crate::files::logs::{IncomingLogChunk, LogAppendResult};
use crate::service::ServiceContext;
use crate::service::agents::AgentService;
use crate::service::attempt_ref::AttemptRef;
use crate::service::jobs::JobService;

pub const MAX_READ_BYTES: u32 = 1 << 20;

/// Logs of attempts.
pub struct LogService {
    pub(super) files: Arc<LogStore>,
    pub searches: LogSearchLimiter,
    pub(super) agents: Arc<AgentService>,
    pub(super) jobs: Arc<JobService>,
    pub(super) context: Arc<ServiceContext>,
}

impl LogService {
    /// Appends a chunk of a log; returns the number of bytes on disk.
    pub async fn append_log(
        self: &Arc<Self>,
        attempt_ref: &AttemptRef,
        chunk: IncomingLogChunk,
    ) -> Result<u64, ServiceError> {
        if chunk.dropped.is_some() {
            check_gap(&chunk)?;
        }
        let attempt = self.agents.check_attempt(attempt_ref).await?;
        self.context.check_running_disk_space()?;
        let limit = self.context.policy.log_limit;
        if chunk.offset.saturating_add(chunk.bytes.len() as u64) > limit {
            return Err(InvalidInput::TooMuch { items: LimitedItems::LogBytes, limit }.into());
        }
        match self.files.append(&attempt_ref.job, attempt, chunk, self.context.now()).await? {
            LogAppendResult::Gap(durable) => Err(ServiceError::LogGap { durable }),
            LogAppendResult::TooManyGaps => {
                Err(InvalidInput::TooMuch { items: LimitedItems::LogGaps, limit: log_gaps::MAX_GAPS as u64 }.into())
            }
            LogAppendResult::Durable(durable) => {
                self.context.notifier.notify([Topic::Log(attempt_ref.job.clone())]);
                Ok(durable)
            }
        }
    }

    /// Reads a chunk of a log: by default of the newest attempt, and its end.
    pub async fn read_log(
        &self,
        job: &JobId,
        attempt: Option<AttemptNumber>,
        offset: Option<u64>,
        limit: u32,
    ) -> Result<LogChunk, ServiceError> {
        let attempt = self.jobs.resolve_attempt(job, attempt).await?;
        let limit = limit.clamp(1, MAX_READ_BYTES);
        let chunk = self.files.read(job, attempt, offset, u64::from(limit)).await?;
        // After a gap a character may begin in the missing bytes; to omit its rest would look like another gap.
        let leading = if chunk.after_gap { 0 } else { leading_partial_char(&chunk.bytes, chunk.offset) };
        let bytes = &chunk.bytes[leading..];
        let start = chunk.offset + (chunk.bytes.len() - bytes.len()) as u64;
        let complete = bytes.len() - trailing_partial_char(bytes);
        // A chunk that is only an unfinished character is passed on as it is, or a reader would never get past it.
        let bytes = if complete == 0 { bytes } else { &bytes[..complete] };
        let end = start + bytes.len() as u64;
        let is_all = end == chunk.offset + chunk.bytes.len() as u64;
        Ok(LogChunk {
            attempt,
            offset: start,
            next_offset: if is_all { chunk.next } else { end },
            size: chunk.size,
            text: String::from_utf8_lossy(bytes).into_owned(),
        })
    }

    /// Streams a whole log; a gap is replaced by its marker.
    pub async fn stream_log(
        &self,
        job: &JobId,
        attempt: AttemptNumber,
    ) -> Result<impl Stream<Item = std::io::Result<Bytes>> + Send + 'static, ServiceError> {
        Ok(self.files.stream(job, attempt).await?)
    }

    /// Returns whether no more of an attempt's log can arrive: its job has ended, or has a newer attempt.
    pub async fn is_attempt_over(&self, job: &JobId, attempt: AttemptNumber) -> Result<bool, ServiceError> {
        let job = self.context.read().await?.job(job).await?.ok_or_else(|| ServiceError::JobNotFound(job.clone()))?;
        Ok(job.has_ended() || job.attempt != attempt)
    }
}

/// Checks that a gap is long enough for its marker.
fn check_gap(IncomingLogChunk { offset, dropped, .. }: &IncomingLogChunk) -> Result<(), InvalidInput> {
    if !(log_gaps::MIN_GAP_BYTES..=*offset).contains(&dropped.unwrap_or_default()) {
        let allowed = AllowedValues::DroppedBytes { min: log_gaps::MIN_GAP_BYTES };
        return Err(InvalidInput::OutOfRange { field: "dropped", allowed });
    }
    Ok(())
}

/// The number of bytes at the start that belong to a character that began before this chunk.
fn leading_partial_char(bytes: &[u8], offset: u64) -> usize {
    if offset == 0 { 0 } else { bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count() }
}

/// The number of bytes at the end that are an incomplete character.
pub(super) fn trailing_partial_char(bytes: &[u8]) -> usize {
    let Some(trailing) = bytes.iter().rev().take(4).position(|byte| !is_continuation(*byte)) else { return 0 };
    let length = match bytes[bytes.len() - 1 - trailing] {
        0xf0..=0xf7 => 4,
        0xe0..=0xef => 3,
        0xc0..=0xdf => 2,
        _ => 1,
    };
    if trailing + 1 < length { trailing + 1 } else { 0 }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_end_between_characters() {
        let euro = "a€".as_bytes();
        assert_eq!(trailing_partial_char(euro), 0);
        assert_eq!(trailing_partial_char(&euro[..3]), 2);
        assert_eq!(trailing_partial_char(&euro[..2]), 1);
        assert_eq!(trailing_partial_char(b"abc"), 0);
        assert_eq!(trailing_partial_char(b""), 0);
        assert_eq!(trailing_partial_char(&[0x80, 0x80, 0x80, 0x80]), 0);
        assert_eq!(leading_partial_char(&euro[2..], 2), 2);
        assert_eq!(leading_partial_char(&euro[1..], 1), 0);
        assert_eq!(leading_partial_char(&euro[2..], 0), 0);
    }
}
