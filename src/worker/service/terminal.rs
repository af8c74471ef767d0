//! The last line of a terminal: how it stands, below whatever is logged, and gone when the process ends.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use app::logging::queue;

use crate::secret::own;

/// What is shown; nothing exists where no terminal is.
static SHOWN: OnceLock<Mutex<String>> = OnceLock::new();

const ERASE: &str = "\r\u{1b}[K";

/// From now on there is such a line, if the terminal can do it.
pub fn open() {
    if std::env::var_os("TERM").is_some_and(|kind| kind != "dumb") {
        SHOWN.get_or_init(Mutex::default);
    }
}

/// Whether there is one.
pub fn is_open() -> bool {
    SHOWN.get().is_some()
}

/// Shows this text, which has no control characters.
pub fn show(text: &str) {
    let Some(shown) = SHOWN.get() else { return };
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let text = &own::text_without(text);
    if *shown != *text {
        text.clone_into(&mut shown);
        drop(shown);
        // It is drawn again below whatever is written. A terminal that is gone loses nothing.
        let _ = log().write_all(ERASE.as_bytes());
    }
}

/// Takes the line away.
pub fn clear() {
    show("");
}

/// Cut off by the terminal itself where it ends, so that it never becomes two.
fn line(before: &str, text: &str) -> String {
    if text.is_empty() { before.to_owned() } else { format!("{before}\u{1b}[?7l{text}\u{1b}[?7h") }
}

/// Where the log goes: to the queue, if there is one, else straight to the screen.
pub fn log() -> Log {
    Log
}

/// See [`log`].
#[derive(Debug)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if queue::push(bytes) { Ok(bytes.len()) } else { Screen.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stderr, above the line.
pub fn screen() -> Screen {
    Screen
}

/// See [`screen`].
#[derive(Debug)]
pub struct Screen;

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A line comes as a whole.
        let said = own::without(bytes);
        let Some(shown) = SHOWN.get() else { return io::stderr().write_all(&said).map(|()| bytes.len()) };
        let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::with_capacity(bytes.len() + shown.len() + 32);
        if !shown.is_empty() {
            all.extend_from_slice(ERASE.as_bytes());
        }
        all.extend_from_slice(&said);
        all.extend_from_slice(line("", &shown).as_bytes());
        io::stderr().write_all(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
