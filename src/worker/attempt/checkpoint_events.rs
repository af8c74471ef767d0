//! Reads from the trainer's events which checkpoints it has saved.

use std::path::Path;

use app::domain::time::Timestamp;
use app::threads::run_io;
use serde_json::Value;

use super::AttemptRunner;
use super::metrics::read_complete_lines;
use crate::worker::artifacts::checkpoints::ReportedCheckpoints;
use crate::worker::files::AttemptDir;
use crate::worker::progress::{ProgressReader, event_type};

#[derive(Debug, Default)]
pub struct CheckpointEventReader {
    offset: u64,
    reader: ProgressReader,
    pub reported: ReportedCheckpoints,
}

impl CheckpointEventReader {
    /// Reads the events added since the last call.
    pub fn read_new(&mut self, dir: &AttemptDir) {
        loop {
            // Before the first event there is no file.
            let (next, lines) = read_complete_lines(dir, self.offset).unwrap_or_default();
            if next <= self.offset {
                return;
            }
            self.offset = next;
            for line in lines.split(|byte| *byte == b'\n') {
                if let Ok(line) = serde_json::from_slice::<Value>(line) {
                    self.apply(&line["event"]);
                }
            }
        }
    }

    fn apply(&mut self, event: &Value) {
        let kind = event_type(event);
        if kind == Some("training.checkpoint") {
            let checkpoint = &event["checkpoint"];
            let texts = ["path", "label"].iter().filter_map(|key| checkpoint[*key].as_str());
            // Only the directory's name counts: paths may be those inside the sandbox.
            let names = texts.filter_map(|path| Path::new(path).file_name()?.to_str());
            self.reported.finished.extend(names.map(str::to_owned));
        } else if let Some(point) = self.reader.read_point(event, Timestamp::default()) {
            self.reported.step = point.step;
        }
    }
}

impl AttemptRunner {
    /// Reads the events added since the last call.
    pub(super) async fn read_events(&self, events: &mut CheckpointEventReader) {
        let (dir, mut reader) = (self.dir.clone(), std::mem::take(events));
        let read = move || {
            reader.read_new(&dir);
            Ok(reader)
        };
        // If the thread fails, they are read again from the start.
        *events = run_io(read).await.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checkpoints_are_identified_by_directory_name() {
        let mut events = CheckpointEventReader::default();
        for event in [
            json!({"type": "training.status", "progress": {"current": 7}}),
            json!({"type": "training.checkpoint", "checkpoint": {"path": "/o/checkpoint-5/", "is_final": false}}),
            json!({"type": "training.checkpoint", "checkpoint": {"label": "checkpoint-10"}}),
            json!({"type": "training.checkpoint", "checkpoint": {"path": "/", "label": 5}}),
            json!({"type": "training.checkpoint"}),
            json!({"type": "other", "checkpoint": {"path": "checkpoint-6"}}),
            json!(null),
        ] {
            events.apply(&event);
        }
        let finished: Vec<_> = events.reported.finished.iter().map(String::as_str).collect();
        assert_eq!((events.reported.step, &finished[..]), (7, &["checkpoint-10", "checkpoint-5"][..]));
    }
}
