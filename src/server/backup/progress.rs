//! How far it is, for whoever watches on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EACH: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    shown: bool,
    files: u64,
    bytes: u64,
    last: Instant,
}

impl Progress {
    /// Of this work. Elsewhere than on a terminal nothing is shown.
    pub fn of(what: &'static str) -> Self {
        Self { what, shown: std::io::stderr().is_terminal(), files: 0, bytes: 0, last: Instant::now() }
    }

    /// So many more bytes are done.
    pub fn bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.shown && self.last.elapsed() > EACH {
            self.last = Instant::now();
            self.show("");
        }
    }

    /// One more file is done.
    pub fn file(&mut self) {
        self.files += 1;
    }

    fn show(&self, end: &str) {
        let mut out = std::io::stderr().lock();
        // Whoever watches may have gone.
        let _ = write!(out, "\r{}: {} files, {} MiB{end}", self.what, self.files, self.bytes >> 20);
        let _ = out.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            self.show("\n");
        }
    }
}
