//! The end of an attempt: everything is delivered, and then the end is reported, until there is an answer.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use app::protocol::worker::StatusReport;

use super::{Attempt, blocking};
use crate::api::{ApiError, until_answered};
use crate::files::StopCause;
use crate::outcome;
use crate::secret::mask::Mask;

/// So much of the log's end is looked at for the error.
const LOG_END: u64 = 16 * 1024;
/// The longest error that is reported, in characters.
const LONGEST_ERROR: usize = 2_000;

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
        let (log, given) = (self.dir.log(), Arc::clone(self.given()));
        let end = blocking(move || read_end(&log, &given.mask)).await.unwrap_or_default();
        let mut report = outcome::report(self.key(), &exit, &end)?;
        if exit.stopped == Some(StopCause::Requeue) {
            report.error = self.context.shared.end_in_words().or(report.error);
        }
        self.last_words(&report, &end);
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
                        let log = self.dir.log();
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

fn read_end(path: &Path, mask: &Mask) -> std::io::Result<String> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(LOG_END);
    // A secret may begin before it.
    let start = from.saturating_sub(mask.reach() as u64);
    let mut bytes = vec![0; usize::try_from(length - start).unwrap_or_default()];
    let count = file.read_at(&mut bytes, start)?;
    mask.hide(&mut bytes[..count]);
    let end = bytes[..count].get(usize::try_from(from - start).unwrap_or_default()..).unwrap_or_default();
    Ok(String::from_utf8_lossy(end).into_owned())
}
