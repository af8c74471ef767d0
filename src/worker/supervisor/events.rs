//! The trainer's events, written down as they come.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{media, told};
use crate::clock;
use crate::files::AttemptDir;

/// How many files one request may bring. They are made one by one, and meanwhile nothing else is looked at.
const MAX_FILES: usize = 1_000;

/// `events.jsonl`, and where the media that events carry go. Trouble that events tell of gets a line in the trainer's log.
pub struct Events {
    file: File,
    log: File,
    output: PathBuf,
    count: u64,
    most_values: usize,
}

impl Events {
    /// Appends to what is there. No request may have more values.
    pub fn open(dir: &AttemptDir, most_values: usize) -> io::Result<Self> {
        let appended = |path| OpenOptions::new().append(true).create(true).open(path);
        let (file, log) = (appended(dir.events())?, appended(dir.log())?);
        Ok(Self { file, log, output: dir.output(), count: 0, most_values })
    }

    /// Takes the body of one request: an event or a list of them.
    ///
    /// # Errors
    /// `InvalidData` if it is no JSON, else whatever the disk says.
    pub fn take(&mut self, body: &[u8]) -> io::Result<()> {
        if body.split(|byte| *byte == b',').count() > self.most_values {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "too many values in one request"));
        }
        let parsed = serde_json::from_slice(body).or_else(|_| serde_json::from_slice(&without_nan(body)));
        let parsed: Value = parsed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let events = if let Value::Array(list) = parsed { list } else { vec![parsed] };
        let mut most_files = MAX_FILES;
        for mut event in events {
            self.count += 1;
            media::extract(&mut event, &self.output, self.count, &mut most_files)?;
            let mut line = serde_json::to_vec(&json!({"at": clock::now(), "event": event}))?;
            line.push(b'\n');
            // One write, so that a reader finds whole lines.
            self.file.write_all(&line)?;
            if let Some(told) = told::line(&event) {
                self.log.write_all(format!("{told}\n").as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Python writes numbers that are none as bare words, which JSON does not know; they become null.
fn without_nan(body: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut clean = Vec::with_capacity(body.len());
    let (mut in_text, mut at) = (false, 0);
    while at < body.len() {
        let word = WORDS.iter().find(|word| !in_text && body[at..].starts_with(word));
        if let Some(word) = word {
            clean.extend_from_slice(b"null");
            at += word.len();
            continue;
        }
        clean.push(body[at]);
        if in_text && body[at] == b'\\' {
            clean.extend(body.get(at + 1));
            at += 1;
        } else if body[at] == b'"' {
            in_text = !in_text;
        }
        at += 1;
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none() {
        let clean = |text: &str| String::from_utf8(without_nan(text.as_bytes())).unwrap_or_default();
        assert_eq!(clean(r#"{"loss": NaN, "a": [-Infinity, Infinity]}"#), r#"{"loss": null, "a": [null, null]}"#);
        assert_eq!(clean(r#"{"a": "NaN \" NaN", "b": 1}"#), r#"{"a": "NaN \" NaN", "b": 1}"#);
        assert_eq!(clean("\"\\"), "\"\\");
    }

    #[test]
    fn one_line_per_event() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let mut events = Events::open(&dir, 1_000)?;
        events.take(br#"[{"type": "a"}, {"type": "b", "loss": NaN}]"#)?;
        events.take(br#"{"type": "c"}"#)?;
        assert!(events.take(b"{").is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
        let many = format!("[0{}]", ",0".repeat(1_000));
        assert!(events.take(many.as_bytes()).is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
        let text = std::fs::read_to_string(dir.events())?;
        let kinds: Vec<Value> = text
            .lines()
            .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["event"]["type"].clone()))
            .collect();
        assert_eq!(kinds, ["a", "b", "c"]);
        assert_eq!(std::fs::read_to_string(dir.log())?, "");
        events.take(br#"{"type": "error", "message": "no space left"}"#)?;
        assert_eq!(std::fs::read_to_string(dir.log())?, "[event] ERROR no space left\n");
        Ok(())
    }
}
