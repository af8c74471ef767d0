//! The trainer's events on their way to the orchestrator, as points of progress.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::worker::{ProgressPoint, ProgressReport};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Attempt, blocking};
use crate::api::until_answered;
use crate::progress::Reader;

const PERIOD: Duration = Duration::from_secs(1);
/// The most points in one report.
const BATCH: usize = 500;
/// The most that is read at once; a longer line is skipped.
const CHUNK: usize = 4 * 1024 * 1024;
/// With a refused worker token only reports of the job keep its lease.
const KEEP_LEASE: Duration = Duration::from_secs(20);

/// A line of `events.jsonl`.
#[derive(Deserialize)]
struct Line {
    at: Timestamp,
    event: Value,
}

impl Attempt {
    /// Until all of them are there, after the end.
    pub(super) async fn pump_points(&self, mut done: watch::Receiver<bool>) {
        let mut reader = Reader::default();
        let mut reported = Instant::now();
        loop {
            let ended = *done.borrow();
            let offset = self.state().events_acked;
            let path = self.dir.events();
            let fresh = std::fs::metadata(&path).map_or(0, |meta| meta.len()) > offset;
            let lines =
                if fresh { blocking(move || whole_lines(path, offset)).await.unwrap_or_default() } else { Vec::new() };
            let points = points(&mut reader, &lines);
            let lease = self.context.refused.load(Ordering::Relaxed) && reported.elapsed() > KEEP_LEASE;
            if !points.is_empty() || lease {
                reported = Instant::now();
                if !self.send_points(points).await {
                    return;
                }
            }
            if !lines.is_empty() {
                let acked = offset + lines.len() as u64;
                self.update(false, |state| state.events_acked = acked).await;
            } else if ended {
                return;
            }
            if !ended {
                let _ = tokio::time::timeout(PERIOD, done.wait_for(|done| *done)).await;
            }
        }
    }

    async fn send_points(&self, points: Vec<ProgressPoint>) -> bool {
        self.context.shared.note(self.key(), &points);
        let batches: Vec<_> = if points.is_empty() { vec![&points[..]] } else { points.chunks(BATCH).collect() };
        for batch in batches {
            let report = ProgressReport { attempt: self.key().attempt, points: batch.to_vec() };
            let what = format!("sending the progress of {}", self.key());
            if let Err(error) =
                until_answered(&self.context.online, &what, async || self.api.progress(&report).await).await
            {
                self.judge("sending its progress", &error);
                // Curves are worth less than the job.
                return false;
            }
        }
        true
    }
}

fn points(reader: &mut Reader, lines: &[u8]) -> Vec<ProgressPoint> {
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
        .filter_map(|line| reader.point(&line.event, line.at))
        .collect()
}

/// The whole lines from an offset on; of a line that is too long, whatever was read.
fn whole_lines(path: PathBuf, offset: u64) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(CHUNK).min(CHUNK)];
    let count = file.read_at(&mut bytes, offset)?;
    bytes.truncate(count);
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => bytes.truncate(end + 1),
        None if count < CHUNK => bytes.clear(),
        None => {}
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_waits() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("events.jsonl");
        std::fs::write(&path, "one\ntwo\nthr")?;
        assert_eq!(whole_lines(path.clone(), 0)?, b"one\ntwo\n");
        assert_eq!(whole_lines(path, 8)?, b"");
        Ok(())
    }
}
