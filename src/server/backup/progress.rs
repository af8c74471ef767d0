//! Progress on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct BackupProgress {
    label: &'static str,
    is_visible: bool,
    files: u64,
    bytes: u64,
    drawn_at: Instant,
}

impl BackupProgress {
    /// Creates a progress line with this label; without a terminal nothing is printed.
    pub fn new(label: &'static str) -> Self {
        Self { label, is_visible: std::io::stderr().is_terminal(), files: 0, bytes: 0, drawn_at: Instant::now() }
    }

    /// Adds finished bytes.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.is_visible && self.drawn_at.elapsed() > REDRAW_INTERVAL {
            self.drawn_at = Instant::now();
            self.draw("");
        }
    }

    /// Adds a finished file.
    pub fn add_file(&mut self) {
        self.files += 1;
    }

    fn draw(&self, end: &str) {
        let mut out = std::io::stderr().lock();
        // Stderr may be closed.
        let _ = write!(out, "\r{}: {} files, {} MiB{end}", self.label, self.files, self.bytes >> 20);
        let _ = out.flush();
    }
}

impl Drop for BackupProgress {
    fn drop(&mut self) {
        if self.is_visible {
            self.draw("\n");
        }
    }
}
