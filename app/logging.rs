//! The log format of the server and the agent: one line per event, as text or as JSON.
//!
//! Names, paths and other untrusted text appear in log lines. Everything that could start a new line, move the cursor
//! or change the direction of the text is escaped, so untrusted text cannot forge a log line.

pub mod background_writer;

use std::fmt::{self, Debug, Write};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::domain::text::{escape, is_control_or_invisible};

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLineFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per event: `time`, `level`, `target`, `message`, the log context, and `fields`.
    Json,
}

impl LogLineFormat {
    /// Parses a format name.
    ///
    /// # Errors
    ///
    /// Returns a list of the valid names.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("use text or json".to_owned()),
        }
    }

    /// Returns the name of the format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Returns fields that apply to all events of the current context, such as the request ID.
pub type LogContext = fn() -> Vec<(&'static str, String)>;

/// Formats events; see the module documentation.
#[derive(Debug, Clone, Copy)]
pub struct LogFormatter {
    /// The output format.
    pub format: LogLineFormat,
    /// Whether text lines include the target (module path).
    pub with_target: bool,
    /// The log context.
    pub context: LogContext,
}

impl<S, N> FormatEvent<S, N> for LogFormatter
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut visitor = FieldVisitor::default();
        event.record(&mut visitor);
        let target = visitor.target.take().unwrap_or_else(|| event.metadata().target().to_owned());
        let (level, context) = (*event.metadata().level(), (self.context)());
        match self.format {
            LogLineFormat::Text => {
                let level = format_level(level, writer.has_ansi_escapes());
                let target = if self.with_target { format!("{target}: ") } else { String::new() };
                write!(writer, "{time} {level} {}{}", escape(&target), escape(&visitor.message))?;
                for (name, value) in &visitor.fields {
                    let value = value.as_str().map_or_else(|| value.to_string(), quote_if_needed);
                    write!(writer, " {name}={}", escape(&value))?;
                }
                context.iter().try_for_each(|(name, value)| write!(writer, " {name}={}", escape(value)))?;
            }
            LogLineFormat::Json => {
                let mut line = Map::new();
                line.insert("time".to_owned(), time.into());
                line.insert("level".to_owned(), level.as_str().to_ascii_lowercase().into());
                line.insert("target".to_owned(), target.into());
                line.insert("message".to_owned(), visitor.message.into());
                line.extend(context.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
                let (ids, fields): (Vec<_>, Vec<_>) =
                    visitor.fields.into_iter().partition(|(name, _)| ["request_id", "trace_id"].contains(name));
                line.extend(ids.into_iter().map(|(name, id)| (name.to_owned(), id)));
                if !fields.is_empty() {
                    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                    line.insert("fields".to_owned(), Value::Object(fields.collect()));
                }
                write!(writer, "{}", to_json_line(&Value::Object(line)))?;
            }
        }
        writeln!(writer)
    }
}

#[derive(Default)]
struct FieldVisitor {
    message: String,
    fields: Vec<(&'static str, Value)>,
    /// Set for events that come from the `log` crate.
    target: Option<String>,
}

impl FieldVisitor {
    fn insert(&mut self, field: &Field, value: Value) {
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

impl Visit for FieldVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.insert(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.insert(field, value.to_string().into());
    }
}

fn format_level(level: Level, ansi: bool) -> String {
    let color = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    if ansi { format!("\x1b[{color}m{:>5}\x1b[0m", level.as_str()) } else { format!("{:>5}", level.as_str()) }
}

/// Quotes a value that contains spaces, so that it is not read as several fields.
fn quote_if_needed(text: &str) -> String {
    if text.is_empty() || text.contains([' ', '"', '=']) { format!("{text:?}") } else { text.to_owned() }
}

/// JSON serializers escape control characters only up to U+001F; this also escapes the others.
fn to_json_line(value: &Value) -> String {
    value.to_string().chars().fold(String::new(), |mut line, c| {
        if is_control_or_invisible(c) {
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

    /// A forged line, an escape sequence, a NUL, C1 controls, and Unicode that breaks lines or changes their direction.
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

    /// Returns what `write` logs.
    fn capture_output(format: LogLineFormat, write: impl FnOnce()) -> String {
        let captured = Captured::default();
        let lines = LogFormatter { format, with_target: true, context: || vec![("request_id", "r1".to_owned())] };
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).event_format(lines).with_writer(writer).finish();
        tracing::subscriber::with_default(subscriber, write);
        let bytes = captured.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    fn log_evil_text() {
        let error = io::Error::other(EVIL);
        tracing::info!(name = EVIL, shown = %EVIL, debugged = ?EVIL, %error, count = 3, "it came from {EVIL}");
    }

    #[test]
    fn t14_untrusted_text_cannot_forge_lines_or_move_the_cursor() {
        for format in [LogLineFormat::Text, LogLineFormat::Json] {
            let log = capture_output(format, log_evil_text);
            let line = log.strip_suffix('\n').expect("a complete line");
            assert_eq!(line.chars().find(|c| is_control_or_invisible(*c)), None, "{line:?}");
        }
    }

    #[test]
    fn t14_escaped_text_round_trips_through_json() {
        let line: Value = serde_json::from_str(&capture_output(LogLineFormat::Json, log_evil_text)).expect("JSON");
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
    fn text_format_is_readable() {
        let log = capture_output(LogLineFormat::Text, || tracing::warn!(worker = "gpu 1", ms = 5, "worker offline"));
        let rest = log.split_once(' ').expect("a time").1;
        assert_eq!(rest, " WARN app::logging::tests: worker offline worker=\"gpu 1\" ms=5 request_id=r1\n");
    }

    #[test]
    fn event_field_overrides_context_field() {
        let line = capture_output(LogLineFormat::Json, || tracing::info!(request_id = "own", trace_id = "t", "x"));
        let line: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&line["request_id"], &line["trace_id"], line.get("fields")), (&"own".into(), &"t".into(), None));
    }
}
