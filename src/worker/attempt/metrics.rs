//! Uploads the trainer's events as metrics.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::agents::{ProgressPoint, ProgressReport};
use app::threads::run_io;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{AttemptRunner, file_size};
use crate::worker::api::retry_until_answered;
use crate::worker::files::AttemptDir;
use crate::worker::progress::ProgressReader;
use crate::worker::secret::mask::Mask;

const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum points per report.
const MAX_BATCH_POINTS: usize = 500;
/// Maximum values per report, whose names have up to 200 bytes as JSON: a report has at most 2 MiB.
const MAX_BATCH_VALUES: usize = 8_000;
/// Maximum bytes per read; a longer line is skipped.
const MAX_READ_BYTES: usize = 4 * 1024 * 1024;
/// While the worker token is rejected, only reports of the job renew its lease.
const LEASE_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// A line of `events.jsonl`.
#[derive(Deserialize)]
struct EventRecord {
    at: Timestamp,
    event: Value,
}

impl AttemptRunner {
    /// Runs until all events are delivered after the end.
    pub(super) async fn upload_metrics(&self, mut done: watch::Receiver<bool>) {
        let mut reader = ProgressReader::default();
        let mut reported_at = Instant::now();
        loop {
            let ended = *done.borrow();
            let offset = self.state().events_acked;
            let dir = self.dir.clone();
            let has_new_events = file_size(dir.events_path()).await > offset;
            let read = async || run_io(move || read_complete_lines(&dir, offset)).await.unwrap_or_default();
            let (next, lines) = if has_new_events { read().await } else { (offset, Vec::new()) };
            let points = parse_points(&mut reader, &self.job_secrets().mask, &lines);
            let must_renew_lease =
                self.context.token_rejected.load(Ordering::Relaxed) && reported_at.elapsed() > LEASE_KEEPALIVE_INTERVAL;
            if !points.is_empty() || must_renew_lease {
                reported_at = Instant::now();
                if !self.send_metrics(points).await {
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
                let _ = tokio::time::timeout(FLUSH_INTERVAL, done.wait_for(|done| *done)).await;
            }
        }
    }

    async fn send_metrics(&self, points: Vec<ProgressPoint>) -> bool {
        self.context.status.record_points(self.key(), &points);
        for batch in batches(&points) {
            let report = ProgressReport { attempt: self.key().attempt, points: batch.to_vec() };
            let operation = format!("sending the progress of {}", self.key());
            if let Err(error) = retry_until_answered(&self.context.reconnect_signal, &operation, async || {
                self.api.report_progress(&report).await
            })
            .await
            {
                self.handle_error("sending its progress", &error);
                // Metrics are worth less than the job.
                return false;
            }
        }
        true
    }
}

/// Returns the points of each report; without points, one report renews the lease.
fn batches(points: &[ProgressPoint]) -> Vec<&[ProgressPoint]> {
    let (mut batches, mut start, mut values) = (Vec::new(), 0, 0);
    for (index, point) in points.iter().enumerate() {
        let count = point.metrics.len();
        if index - start >= MAX_BATCH_POINTS || values + count > MAX_BATCH_VALUES {
            batches.push(&points[start..index]);
            (start, values) = (index, 0);
        }
        values += count;
    }
    batches.push(&points[start..]);
    batches
}

/// Masks secrets in the raw event, because its texts are truncated later.
fn parse_points(reader: &mut ProgressReader, mask: &Mask, lines: &[u8]) -> Vec<ProgressPoint> {
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<EventRecord>(line).ok())
        .filter_map(|mut line| {
            mask.mask_json(&mut line.event);
            reader.read_point(&line.event, line.at)
        })
        .collect()
}

/// The complete lines from an offset on, and the offset of the next one; of a line that is too long, what was read. A
/// dropped part is skipped, including the rest of the line in which it ends.
pub(super) fn read_complete_lines(dir: &AttemptDir, offset: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let file = File::open(dir.events_path())?;
    let lines = read_lines_at(&file, offset)?;
    // Read after the data, because truncation may have happened in between.
    let floor = dir.truncation_offsets().events;
    if offset >= floor {
        return Ok((offset + lines.len() as u64, lines));
    }
    let mut rest = read_lines_at(&file, floor)?;
    let cut = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    let next = floor + rest.len() as u64;
    // Truncation may have happened again.
    if dir.truncation_offsets().events > floor {
        return Ok((floor, Vec::new()));
    }
    Ok((next, rest.split_off(cut)))
}

fn read_lines_at(file: &File, offset: u64) -> std::io::Result<Vec<u8>> {
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(MAX_READ_BYTES).min(MAX_READ_BYTES)];
    let count = file.read_at(&mut bytes, offset)?;
    bytes.truncate(count);
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => bytes.truncate(end + 1),
        None if count < MAX_READ_BYTES => bytes.clear(),
        None => {}
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::files::TruncationOffsets;

    #[test]
    fn reports_have_a_limited_number_of_points_and_values() {
        let point = |count: usize| ProgressPoint {
            metrics: (0..count).map(|n| (format!("m{n}"), 1.0)).collect(),
            ..ProgressPoint::default()
        };
        let sizes = |points: Vec<ProgressPoint>| batches(&points).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(Vec::new()), [0], "it renews the lease");
        assert_eq!(sizes(vec![point(1); 1_200]), [500, 500, 200]);
        assert_eq!(sizes(vec![point(200); 100]), [40, 40, 20]);
        assert_eq!(sizes([vec![point(0); 10], vec![point(256); 32]].concat()), [41, 1]);
    }

    #[test]
    fn incomplete_line_is_not_read() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        std::fs::write(dir.events_path(), "one\ntwo\nthr")?;
        assert_eq!(read_complete_lines(&dir, 0)?, (8, b"one\ntwo\n".to_vec()));
        assert_eq!(read_complete_lines(&dir, 8)?, (8, Vec::new()));
        Ok(())
    }

    #[test]
    fn reading_continues_with_the_first_complete_line_after_a_gap() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        std::fs::write(dir.events_path(), "\0\0\0\0\0o\nthree\nfour\n")?;
        dir.write_json("log.json", &TruncationOffsets { events: 5, ..TruncationOffsets::default() })?;
        assert_eq!(read_complete_lines(&dir, 0)?, (18, b"three\nfour\n".to_vec()));
        assert_eq!(read_complete_lines(&dir, 7)?, (18, b"three\nfour\n".to_vec()));
        Ok(())
    }
}
