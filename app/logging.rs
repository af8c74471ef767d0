//! How server and agent log: a line for each event, as text for people or as JSON for machines.
//!
//! Names, paths and words of strangers stand in log lines. Whatever could begin another line, move the cursor, or turn the
//! direction of writing is escaped, so that a line says what the program said and nothing else.

pub mod queue;

use std::fmt::{self, Debug, Write};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::domain::text::{acts, escaped};

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// An object for each event: `time`, `level`, `target`, `message`, what it happened in, and `fields`.
    Json,
}

impl Format {
    /// Reads the word.
    ///
    /// # Errors
    /// With the words there are.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("write text or json".to_owned()),
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What an event happened in, such as the request's id, if anything.
pub type Around = fn() -> Vec<(&'static str, String)>;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// As what.
    pub format: Format,
    /// Whether text says which part of the program it comes from.
    pub with_target: bool,
    /// What events happen in.
    pub around: Around,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut said = Said::default();
        event.record(&mut said);
        let target = said.target.take().unwrap_or_else(|| event.metadata().target().to_owned());
        let (level, around) = (*event.metadata().level(), (self.around)());
        match self.format {
            Format::Text => {
                let level = coloured(level, writer.has_ansi_escapes());
                let target = if self.with_target { format!("{target}: ") } else { String::new() };
                write!(writer, "{time} {level} {}{}", escaped(&target), escaped(&said.message))?;
                for (name, value) in &said.fields {
                    let value = value.as_str().map_or_else(|| value.to_string(), quoted);
                    write!(writer, " {name}={}", escaped(&value))?;
                }
                around.iter().try_for_each(|(name, value)| write!(writer, " {name}={}", escaped(value)))?;
            }
            Format::Json => {
                let mut line = Map::new();
                line.insert("time".to_owned(), time.into());
                line.insert("level".to_owned(), level.as_str().to_ascii_lowercase().into());
                line.insert("target".to_owned(), target.into());
                line.insert("message".to_owned(), said.message.into());
                line.extend(around.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
                let (ids, fields): (Vec<_>, Vec<_>) =
                    said.fields.into_iter().partition(|(name, _)| ["request_id", "trace_id"].contains(name));
                line.extend(ids.into_iter().map(|(name, id)| (name.to_owned(), id)));
                if !fields.is_empty() {
                    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                    line.insert("fields".to_owned(), Value::Object(fields.collect()));
                }
                write!(writer, "{}", json_line(&Value::Object(line)))?;
            }
        }
        writeln!(writer)
    }
}

/// What an event says.
#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, Value)>,
    /// Of events that come from the older `log`.
    target: Option<String>,
}

impl Said {
    fn put(&mut self, field: &Field, value: Value) {
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match field.name() {
            "message" => self.message = text(value),
            "log.target" => self.target = Some(text(value)),
            name if name.starts_with("log.") => {}
            name => {
                self.fields.push((name.strip_prefix("r#").unwrap_or(name), value));
            }
        }
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string().into());
    }
}

fn coloured(level: Level, ansi: bool) -> String {
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    if ansi { format!("\x1b[{colour}m{:>5}\x1b[0m", level.as_str()) } else { format!("{:>5}", level.as_str()) }
}

/// A value with spaces in it would read like several.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([' ', '"', '=']) { format!("{text:?}") } else { text.to_owned() }
}

/// JSON escapes control characters up to U+001F by itself; the others are escaped as it allows.
fn json_line(value: &Value) -> String {
    value.to_string().chars().fold(String::new(), |mut line, c| {
        if acts(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
        line
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// A forged line, an escape sequence, a NUL, C1, and Unicode that breaks or turns lines.
    const EVIL: &str = "x\n2026-01-01T00:00:00Z  INFO simpletuner: ada logged in\r\x1b[2J\x1b]8;;http://evil\x07\0\u{9b}31m\u{2028}\u{202e}y";

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Captured {
        type Writer = Self;
        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What is written of what `say` says.
    fn written(format: Format, say: impl FnOnce()) -> String {
        let captured = Captured::default();
        let lines = Lines { format, with_target: true, around: || vec![("request_id", "r1".to_owned())] };
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).event_format(lines).with_writer(writer).finish();
        tracing::subscriber::with_default(subscriber, say);
        let bytes = captured.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    fn say_evil() {
        let error = io::Error::other(EVIL);
        tracing::info!(name = EVIL, shown = %EVIL, debugged = ?EVIL, %error, count = 3, "it came from {EVIL}");
    }

    #[test]
    fn t14_no_name_makes_a_line_or_moves_a_cursor() {
        for format in [Format::Text, Format::Json] {
            let log = written(format, say_evil);
            let line = log.strip_suffix('\n').expect("a whole line");
            assert_eq!(line.chars().find(|c| acts(*c)), None, "{line:?}");
        }
    }

    #[test]
    fn t14_what_was_escaped_can_be_read_from_json() {
        let line: Value = serde_json::from_str(&written(Format::Json, say_evil)).expect("JSON");
        assert_eq!(
            (&line["level"], &line["request_id"], &line["fields"]["count"]),
            (&"info".into(), &"r1".into(), &3.into())
        );
        assert_eq!(
            (line["message"].as_str(), line["fields"]["name"].as_str()),
            (Some(&*format!("it came from {EVIL}")), Some(EVIL))
        );
        assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')) && line["target"].is_string());
    }

    #[test]
    fn text_reads_like_text() {
        let log = written(Format::Text, || tracing::warn!(worker = "gpu 1", ms = 5, "it is gone"));
        let rest = log.split_once(' ').expect("a time").1;
        assert_eq!(rest, " WARN app::logging::tests: it is gone worker=\"gpu 1\" ms=5 request_id=r1\n");
    }

    #[test]
    fn an_events_own_id_wins() {
        let line = written(Format::Json, || tracing::info!(request_id = "own", trace_id = "t", "x"));
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&line["request_id"], &line["trace_id"], line.get("fields")), (&"own".into(), &"t".into(), None));
    }
}
