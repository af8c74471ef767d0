//! What the trainer's events say of its checkpoints.

use std::path::Path;

use app::domain::time::Timestamp;
use serde_json::Value;

use super::points::whole_lines;
use super::{Attempt, blocking};
use crate::artifacts::checkpoints::Said;
use crate::files::AttemptDir;
use crate::progress::Reader;

/// The events that were read so far.
#[derive(Debug, Default)]
pub struct Events {
    offset: u64,
    reader: Reader,
    /// What they say.
    pub said: Said,
}

impl Events {
    /// Reads what has come since.
    pub fn catch_up(&mut self, dir: &AttemptDir) {
        loop {
            // There is no file before the first event.
            let (next, lines) = whole_lines(dir, self.offset).unwrap_or_default();
            if next <= self.offset {
                return;
            }
            self.offset = next;
            for line in lines.split(|byte| *byte == b'\n') {
                if let Ok(line) = serde_json::from_slice::<Value>(line) {
                    self.take(&line["event"]);
                }
            }
        }
    }

    /// Takes one event.
    fn take(&mut self, event: &Value) {
        let kind = ["type", "event", "event_type", "message_type"].iter().find_map(|key| event[*key].as_str());
        if kind == Some("training.checkpoint") {
            let checkpoint = &event["checkpoint"];
            let texts = ["path", "label"].iter().filter_map(|key| checkpoint[*key].as_str());
            // Wherever the trainer thinks that it is: only its own name counts.
            let names = texts.filter_map(|path| Path::new(path).file_name()?.to_str());
            self.said.finished.extend(names.map(str::to_owned));
        } else if let Some(point) = self.reader.point(event, Timestamp::default()) {
            self.said.step = point.step;
        }
    }
}

impl Attempt {
    /// Reads what has come since.
    pub(super) async fn read_events(&self, events: &mut Events) {
        let (dir, mut taken) = (self.dir.clone(), std::mem::take(events));
        let read = move || {
            taken.catch_up(&dir);
            Ok(taken)
        };
        // Without the thread they are read again from the beginning.
        *events = blocking(read).await.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checkpoints_are_known_by_the_ends_of_their_paths() {
        let mut events = Events::default();
        for event in [
            json!({"type": "training.status", "progress": {"current": 7}}),
            json!({"type": "training.checkpoint", "checkpoint": {"path": "/o/checkpoint-5/", "is_final": false}}),
            json!({"type": "training.checkpoint", "checkpoint": {"label": "checkpoint-10"}}),
            json!({"type": "training.checkpoint", "checkpoint": {"path": "/", "label": 5}}),
            json!({"type": "training.checkpoint"}),
            json!({"type": "other", "checkpoint": {"path": "checkpoint-6"}}),
            json!(null),
        ] {
            events.take(&event);
        }
        let finished: Vec<_> = events.said.finished.iter().map(String::as_str).collect();
        assert_eq!((events.said.step, &finished[..]), (7, &["checkpoint-10", "checkpoint-5"][..]));
    }
}
