//! The status line at the bottom of a terminal: below the log, and removed at exit.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use app::logging::background_writer;

use crate::worker::secret::agent_secrets;

/// The text shown; unset without a terminal.
static STATUS_LINE: OnceLock<Mutex<String>> = OnceLock::new();

const ERASE_LINE: &str = "\r\u{1b}[K";

/// Enables the status line, if the terminal supports it.
pub fn enable() {
    if std::env::var_os("TERM").is_some_and(|kind| kind != "dumb") {
        STATUS_LINE.get_or_init(Mutex::default);
    }
}

pub fn is_enabled() -> bool {
    STATUS_LINE.get().is_some()
}

/// Shows this text, which contains no control characters.
pub fn set_status(text: &str) {
    let Some(current) = STATUS_LINE.get() else { return };
    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
    let text = &agent_secrets::mask_text(text);
    if *current != *text {
        text.clone_into(&mut current);
        drop(current);
        // Redrawn below whatever is written. If the terminal is closed, nothing is lost.
        let _ = log_writer().write_all(ERASE_LINE.as_bytes());
    }
}

pub fn clear() {
    set_status("");
}

/// The terminal itself truncates the line, so it never wraps.
fn redraw(before: &str, text: &str) -> String {
    if text.is_empty() { before.to_owned() } else { format!("{before}\u{1b}[?7l{text}\u{1b}[?7h") }
}

/// The log's writer: the queue if there is one, otherwise the terminal.
pub fn log_writer() -> LogWriter {
    LogWriter
}

/// See [`log_writer`].
#[derive(Debug)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if background_writer::push(bytes) { Ok(bytes.len()) } else { TerminalWriter.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to stderr, above the status line.
pub fn terminal_writer() -> TerminalWriter {
    TerminalWriter
}

/// See [`terminal_writer`].
#[derive(Debug)]
pub struct TerminalWriter;

impl Write for TerminalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Each call gets a whole line.
        let masked = agent_secrets::mask_bytes(bytes);
        let Some(status_line) = STATUS_LINE.get() else { return io::stderr().write_all(&masked).map(|()| bytes.len()) };
        let status_line = status_line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = Vec::with_capacity(bytes.len() + status_line.len() + 32);
        if !status_line.is_empty() {
            output.extend_from_slice(ERASE_LINE.as_bytes());
        }
        output.extend_from_slice(&masked);
        output.extend_from_slice(redraw("", &status_line).as_bytes());
        io::stderr().write_all(&output)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
