//! The end of an attempt: delivers everything, then reports the end until there is a response.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use app::domain::text::split_headline;
use app::protocol::agents::StatusReport;
use app::threads::run_io;

use super::AttemptRunner;
use crate::worker::api::{OrchestratorError, retry_until_answered};
use crate::worker::files::{AttemptDir, StopCause};
use crate::worker::outcome;
use crate::worker::secret::mask::Mask;

/// Bytes at the end of the log that are searched for the error: launchers print pages after it.
const LOG_TAIL_BYTES: u64 = 256 * 1024;
/// Lines are counted in this many bytes before it.
const MAX_COUNTED_BYTES: u64 = 1 << 30;
/// Longest error that is reported, in characters: as much as the orchestrator stores.
const MAX_ERROR_CHARS: usize = 4_000;

impl AttemptRunner {
    /// Runs the attempt from its current state to its end. Returns the final report, or `None` if the attempt is
    /// superseded.
    pub(super) async fn run_to_end(&self) -> Option<StatusReport> {
        let mut exit = match self.prepare().await {
            Ok(()) => Box::pin(self.monitor()).await,
            Err(exit) => exit,
        };
        let mut rejected = Vec::new();
        tokio::select! {
            biased;
            cause = self.wait_for_stop(StopCause::Cancelled) => {
                exit.stopped = exit.stopped.max(Some(cause));
            }
            files = self.upload_final_files(&exit) => rejected = files,
        }
        if self.is_superseded() {
            return None;
        }
        let (dir, secrets) = (self.dir.clone(), Arc::clone(self.job_secrets()));
        let tail = run_io(move || LogTail::read(&dir, &secrets.mask)).await.unwrap_or_default();
        let mut report = outcome::status_report(self.key(), &exit, &tail.text)?;
        report.error_line = report.error_line.zip(tail.lines_before).map(|(line, before)| before + line);
        if exit.stopped == Some(StopCause::Requeue) {
            report.error = self.context.status.host_termination_reason().or(report.error);
        }
        self.log_last_output(&report, &tail.text);
        if !rejected.is_empty() {
            report.error = Some(report.error.into_iter().chain(rejected).collect::<Vec<_>>().join("\n"));
        }
        // Masked again: the end of a log is cut into lines and cleaned, and file names come from the trainer too.
        let mask = &self.job_secrets().mask;
        report.error = report.error.map(|error| mask.mask_text(&error).chars().take(MAX_ERROR_CHARS).collect());
        Some(self.requeue_if_host_fault(report, &exit).await)
    }

    /// Reports the end. Returns whether the orchestrator accepted the report from this worker.
    pub(super) async fn report_end(&self, mut report: StatusReport) -> bool {
        // Not synced: after a crash of the host the report is created again, from what the supervisor has recorded.
        self.update(false, |state| state.terminal = Some(report.clone())).await;
        let operation = format!("reporting {} of {}", report.status, self.key());
        loop {
            let response = retry_until_answered(&self.context.reconnect_signal, &operation, async || {
                self.api.report_status(&report).await
            });
            let is_accepted = match self.unless_superseded(response).await {
                Some(Ok(())) => {
                    let error = report.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                    if report.status == "failed" {
                        let (log, (error, _)) = (self.dir.log_path(), split_headline(&error));
                        tracing::error!("Process crash: {} failed{error}; its log is {}", self.key(), log.display());
                    } else {
                        tracing::info!("{} {}{error}", self.key(), report.status);
                    }
                    true
                }
                // The error text may be the reason for the rejection.
                Some(Err(OrchestratorError::Rejected { status, detail })) if report.error.is_some() => {
                    tracing::warn!("{operation}: {detail} ({status}); retrying without the error's text");
                    report.error = None;
                    continue;
                }
                // The next agent with a valid token reports it.
                Some(Err(OrchestratorError::Unauthorized(sentence))) => {
                    tracing::error!("{operation}: {sentence}");
                    return false;
                }
                Some(Err(error)) => {
                    tracing::warn!("{operation}: {error}");
                    false
                }
                None => false,
            };
            self.mark_delivered().await;
            return is_accepted;
        }
    }
}

/// The end of a log, with secrets masked.
#[derive(Default)]
struct LogTail {
    text: String,
    /// How many lines end before it, if all of them still exist.
    lines_before: Option<u64>,
}

impl LogTail {
    fn read(dir: &AttemptDir, mask: &Mask) -> io::Result<Self> {
        let file = File::open(dir.log_path())?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(LOG_TAIL_BYTES);
        // A secret may begin before it.
        let start = from.saturating_sub(mask.context_bytes() as u64);
        let mut bytes = vec![0; usize::try_from(length - start).unwrap_or_default()];
        let count = file.read_at(&mut bytes, start)?;
        mask.mask_bytes(&mut bytes[..count]);
        let end = bytes[..count].get(usize::try_from(from - start).unwrap_or_default()..).unwrap_or_default();
        let can_count = from <= MAX_COUNTED_BYTES && dir.truncation_offsets().log == 0;
        let lines_before = if can_count { Some(count_lines(&file, from)?) } else { None };
        Ok(Self { text: String::from_utf8_lossy(end).into_owned(), lines_before })
    }
}

/// Counts the line ends in the first `until` bytes of a file.
fn count_lines(file: &File, until: u64) -> io::Result<u64> {
    let (mut buffer, mut position, mut line_ends) = (vec![0; 256 * 1024], 0, 0);
    while position < until {
        let length = buffer.len().min(usize::try_from(until - position).unwrap_or(usize::MAX));
        let count = file.read_at(&mut buffer[..length], position)?;
        if count == 0 {
            break;
        }
        line_ends += buffer[..count].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        position += count as u64;
    }
    Ok(line_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_before_the_log_tail_are_counted() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let mask = Mask::from_values(["hf_abcdefgh"].into_iter());
        let line = "step of hf_abcdefgh\n";
        let lines = 3 * LOG_TAIL_BYTES / line.len() as u64;
        std::fs::write(dir.log_path(), line.repeat(usize::try_from(lines).unwrap_or_default()))?;
        let tail = LogTail::read(&dir, &mask)?;
        assert_eq!(tail.text.len() as u64, LOG_TAIL_BYTES);
        assert_eq!(tail.lines_before.map(|before| before + tail.text.matches('\n').count() as u64), Some(lines));
        assert!(tail.text.ends_with("step of ***********\n"), "its secrets are masked");
        dir.write_json(
            "log.json",
            &crate::worker::files::TruncationOffsets {
                log: 4_096,
                ..crate::worker::files::TruncationOffsets::default()
            },
        )?;
        assert_eq!(LogTail::read(&dir, &mask)?.lines_before, None, "the number of lines in a gap is unknown");
        Ok(())
    }
}
