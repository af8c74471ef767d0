//! Records the trainer's events as they arrive.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{event_log_line, media};
use crate::worker::clock;
use crate::worker::files::AttemptDir;
use crate::worker::progress::event_step;

/// Max files per request. They are written one by one, and nothing else is handled until all are written.
const MAX_FILES_PER_REQUEST: usize = 1_000;

/// Writes `events.jsonl` and the media inside events. Problems that events report also get a line in the trainer's log.
pub struct EventRecorder {
    file: File,
    log: File,
    output: PathBuf,
    count: u64,
    /// The last step that the trainer reported.
    step: Option<u64>,
    max_values: usize,
}

impl EventRecorder {
    /// Appends to the existing file. No request may have more values than this.
    pub fn open(dir: &AttemptDir, max_values: usize) -> io::Result<Self> {
        let open_append = |path| OpenOptions::new().append(true).create(true).open(path);
        let (file, log) = (open_append(dir.events_path())?, open_append(dir.log_path())?);
        Ok(Self { file, log, output: dir.output_dir(), count: 0, step: None, max_values })
    }

    /// Records the body of one request: an event or a list of events.
    ///
    /// # Errors
    /// `InvalidData` if it is no valid JSON, otherwise any I/O error.
    pub fn record(&mut self, body: &[u8]) -> io::Result<()> {
        if body.split(|byte| *byte == b',').count() > self.max_values {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many values in one request"));
        }
        let parsed = serde_json::from_slice(body).or_else(|_| serde_json::from_slice(&quote_non_finite(body)));
        let parsed: Value = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let events = if let Value::Array(list) = parsed { list } else { vec![parsed] };
        let mut files_left = MAX_FILES_PER_REQUEST;
        for mut event in events {
            self.count += 1;
            self.step = event_step(&event).or(self.step);
            media::extract_media(&mut event, &self.output, self.count, self.step, &mut files_left)?;
            let mut line = serde_json::to_vec(&json!({"at": clock::now(), "event": event}))?;
            line.push(b'\n');
            // One write, so that readers find complete lines.
            self.file.write_all(&line)?;
            if let Some(log_line) = event_log_line::log_line(&event) {
                self.log.write_all(format!("{log_line}\n").as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Python writes NaN and infinity as bare words, which are invalid JSON; they become strings.
fn quote_non_finite(body: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut quoted = Vec::with_capacity(body.len());
    let (mut in_text, mut position) = (false, 0);
    while position < body.len() {
        let word = WORDS.iter().find(|word| !in_text && body[position..].starts_with(word));
        if let Some(word) = word {
            quoted.push(b'"');
            quoted.extend_from_slice(word);
            quoted.push(b'"');
            position += word.len();
            continue;
        }
        quoted.push(body[position]);
        if in_text && body[position] == b'\\' {
            quoted.extend(body.get(position + 1));
            position += 1;
        } else if body[position] == b'"' {
            in_text = !in_text;
        }
        position += 1;
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_finite_numbers_become_strings() {
        let clean = |text: &str| String::from_utf8(quote_non_finite(text.as_bytes())).unwrap_or_default();
        assert_eq!(
            clean(r#"{"loss": NaN, "a": [-Infinity, Infinity]}"#),
            r#"{"loss": "NaN", "a": ["-Infinity", "Infinity"]}"#
        );
        assert_eq!(clean(r#"{"a": "NaN \" NaN", "b": 1}"#), r#"{"a": "NaN \" NaN", "b": 1}"#);
        assert_eq!(clean("\"\\"), "\"\\");
    }

    #[test]
    fn each_event_is_one_line() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let mut events = EventRecorder::open(&dir, 1_000)?;
        events.record(br#"[{"type": "a"}, {"type": "b", "loss": NaN}]"#)?;
        events.record(br#"{"type": "c"}"#)?;
        assert!(events.record(b"{").is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
        let many = format!("[0{}]", ",0".repeat(1_000));
        assert!(events.record(many.as_bytes()).is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
        let text = std::fs::read_to_string(dir.events_path())?;
        let kinds: Vec<Value> = text
            .lines()
            .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["event"]["type"].clone()))
            .collect();
        assert_eq!(kinds, ["a", "b", "c"]);
        assert_eq!(std::fs::read_to_string(dir.log_path())?, "");
        events.record(br#"{"type": "error", "message": "no space left"}"#)?;
        assert_eq!(std::fs::read_to_string(dir.log_path())?, "[event] ERROR no space left\n");
        Ok(())
    }
}
