//! The end of an attempt: everything is delivered, and then the end is reported, until there is an answer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use app::domain::text::headline;
use app::protocol::worker::StatusReport;

use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};
use crate::files::{AttemptDir, StopCause};
use crate::outcome;
use crate::secret::mask::Mask;

/// So much of the log's end is looked at for the error: launchers write pages below it.
const LOG_END: u64 = 256 * 1024;
/// In so much before it lines are counted.
const COUNTED: u64 = 1 << 30;
/// The longest error that is reported, in characters: as much as the orchestrator keeps.
const LONGEST_ERROR: usize = 4_000;

impl Attempt {
    /// From wherever it stands to its end. Answers with what to report; nothing if it is somebody else's.
    pub(super) async fn live(&self) -> Option<StatusReport> {
        let mut exit = match self.prepare().await {
            Ok(()) => Box::pin(self.follow()).await,
            Err(early) => early,
        };
        let mut refused = Vec::new();
        tokio::select! {
            biased;
            cause = self.ordered(StopCause::Cancelled) => {
                exit.stopped = exit.stopped.max(Some(cause));
            }
            files = self.last_files(&exit) => refused = files,
        }
        if self.is_superseded() {
            return None;
        }
        let (dir, given) = (self.dir.clone(), Arc::clone(self.given()));
        let end = blocking(move || LogEnd::read(&dir, &given.mask)).await.unwrap_or_default();
        let mut report = outcome::report(self.key(), &exit, &end.text)?;
        report.error_line = report.error_line.zip(end.before).map(|(line, before)| before + line);
        if exit.stopped == Some(StopCause::Requeue) {
            report.error = self.context.shared.end_in_words().or(report.error);
        }
        self.last_words(&report, &end.text);
        if !refused.is_empty() {
            report.error = Some(report.error.into_iter().chain(refused).collect::<Vec<_>>().join("\n"));
        }
        // Once more: the end of a log is cut into lines and cleaned, and names of files come from the trainer too.
        let mask = &self.given().mask;
        report.error = report.error.map(|error| mask.text(&error).chars().take(LONGEST_ERROR).collect());
        Some(report)
    }

    /// Reports the end. Whether the orchestrator took it as this worker's.
    pub(super) async fn deliver(&self, mut report: StatusReport) -> bool {
        self.update(true, |state| state.terminal = Some(report.clone())).await;
        let what = format!("reporting {} of {}", report.status, self.key());
        loop {
            let answer = until_answered(&self.context.online, &what, async || self.api.status(&report).await);
            let taken = match self.while_ours(answer).await {
                Some(Ok(())) => {
                    let error = report.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                    if report.status == "failed" {
                        let (log, (error, _)) = (self.dir.log(), headline(&error));
                        tracing::error!("Process crash: {} failed{error}; its log is {}", self.key(), log.display());
                    } else {
                        tracing::info!("{} {}{error}", self.key(), report.status);
                    }
                    true
                }
                // Perhaps the words were what it did not like.
                Some(Err(ApiError::Rejected { status, detail })) if report.error.is_some() => {
                    tracing::warn!("{what}: {detail} ({status}); trying without the error's text");
                    report.error = None;
                    continue;
                }
                // The next agent with a good token reports it.
                Some(Err(ApiError::Refused(sentence))) => {
                    tracing::error!("{what}: {sentence}");
                    return false;
                }
                Some(Err(error)) => {
                    tracing::warn!("{what}: {error}");
                    false
                }
                None => false,
            };
            self.close().await;
            return taken;
        }
    }
}

/// The end of a log, without secrets.
#[derive(Default)]
struct LogEnd {
    text: String,
    /// How many lines end before it, if all of them are still there.
    before: Option<u64>,
}

impl LogEnd {
    fn read(dir: &AttemptDir, mask: &Mask) -> io::Result<Self> {
        let file = File::open(dir.log())?;
        let length = file.metadata()?.len();
        let from = length.saturating_sub(LOG_END);
        // A secret may begin before it.
        let start = from.saturating_sub(mask.reach() as u64);
        let mut bytes = vec![0; usize::try_from(length - start).unwrap_or_default()];
        let count = file.read_at(&mut bytes, start)?;
        mask.hide(&mut bytes[..count]);
        let end = bytes[..count].get(usize::try_from(from - start).unwrap_or_default()..).unwrap_or_default();
        let is_whole = from <= COUNTED && dir.floors().log == 0;
        let before = if is_whole { Some(line_ends(&file, from)?) } else { None };
        Ok(Self { text: String::from_utf8_lossy(end).into_owned(), before })
    }
}

/// How many lines end in the first bytes of a file.
fn line_ends(file: &File, until: u64) -> io::Result<u64> {
    let (mut piece, mut at, mut ends) = (vec![0; 256 * 1024], 0, 0);
    while at < until {
        let most = piece.len().min(usize::try_from(until - at).unwrap_or(usize::MAX));
        let count = file.read_at(&mut piece[..most], at)?;
        if count == 0 {
            break;
        }
        ends += piece[..count].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        at += count as u64;
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_before_the_end_are_counted_while_they_are_there() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let mask = Mask::of(["hf_abcdefgh"].into_iter());
        let line = "step of hf_abcdefgh\n";
        let lines = 3 * LOG_END / line.len() as u64;
        std::fs::write(dir.log(), line.repeat(usize::try_from(lines).unwrap_or_default()))?;
        let end = LogEnd::read(&dir, &mask)?;
        assert_eq!(end.text.len() as u64, LOG_END);
        assert_eq!(end.before.map(|before| before + end.text.matches('\n').count() as u64), Some(lines));
        assert!(end.text.ends_with("step of ***********\n"), "its secrets are hidden");
        dir.write("log.json", &crate::files::Floors { log: 4_096, ..crate::files::Floors::default() })?;
        assert_eq!(LogEnd::read(&dir, &mask)?.before, None, "of what was given up nobody knows the lines");
        Ok(())
    }
}
