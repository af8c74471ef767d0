//! The trainer's events on their way to the orchestrator, as points of progress.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::worker::{ProgressPoint, ProgressReport};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Attempt, blocking, length};
use crate::api::until_answered;
use crate::files::AttemptDir;
use crate::progress::Reader;
use crate::secret::mask::Mask;

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
            let dir = self.dir.clone();
            let fresh = length(dir.events()).await > offset;
            let read = async || blocking(move || whole_lines(&dir, offset)).await.unwrap_or_default();
            let (next, lines) = if fresh { read().await } else { (offset, Vec::new()) };
            let points = points(&mut reader, &self.given().mask, &lines);
            let lease = self.context.refused.load(Ordering::Relaxed) && reported.elapsed() > KEEP_LEASE;
            if !points.is_empty() || lease {
                reported = Instant::now();
                if !self.send_points(points).await {
                    return;
                }
            }
            if next > offset {
                let acked = next;
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

/// Secrets are hidden in the event as it came: later its texts are cut.
fn points(reader: &mut Reader, mask: &Mask, lines: &[u8]) -> Vec<ProgressPoint> {
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
        .filter_map(|mut line| {
            mask.json(&mut line.event);
            reader.point(&line.event, line.at)
        })
        .collect()
}

/// The whole lines from an offset on, and where the next begin; of a line that is too long, whatever was read. What was
/// given up meanwhile is passed over, with the rest of the line that its end has cut.
pub(super) fn whole_lines(dir: &AttemptDir, offset: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let file = File::open(dir.events())?;
    let lines = lines_at(&file, offset)?;
    // After reading, as it may have happened in between.
    let floor = dir.floors().events;
    if offset >= floor {
        return Ok((offset + lines.len() as u64, lines));
    }
    let mut rest = lines_at(&file, floor)?;
    let cut = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    let next = floor + rest.len() as u64;
    // It may have happened once more.
    if dir.floors().events > floor {
        return Ok((floor, Vec::new()));
    }
    Ok((next, rest.split_off(cut)))
}

fn lines_at(file: &File, offset: u64) -> std::io::Result<Vec<u8>> {
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
    use crate::files::Floors;

    #[test]
    fn half_a_line_waits() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        std::fs::write(dir.events(), "one\ntwo\nthr")?;
        assert_eq!(whole_lines(&dir, 0)?, (8, b"one\ntwo\n".to_vec()));
        assert_eq!(whole_lines(&dir, 8)?, (8, Vec::new()));
        Ok(())
    }

    #[test]
    fn after_what_was_given_up_comes_the_next_whole_line() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        std::fs::write(dir.events(), "\0\0\0\0\0o\nthree\nfour\n")?;
        dir.write("log.json", &Floors { events: 5, ..Floors::default() })?;
        assert_eq!(whole_lines(&dir, 0)?, (18, b"three\nfour\n".to_vec()));
        assert_eq!(whole_lines(&dir, 7)?, (18, b"three\nfour\n".to_vec()));
        Ok(())
    }
}
