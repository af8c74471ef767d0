//! A finding: a part of a log that may explain why the trainer exited.

use std::ops::Range;

use super::CauseKind;

/// The class of a finding; earlier classes are more likely to be the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogFindingClass {
    /// An uncaught exception.
    Exception,
    /// A crash of the process: a segmentation fault, a C++ exception, an abort after a timeout.
    Crash,
    /// The program did not start: an invalid option, or a missing file or program.
    NeverStarted,
    /// A user pressed Ctrl-C.
    Interrupted,
    /// Another rank had stopped.
    Disconnected,
    /// A launcher or a shell reports the signal that killed it.
    Killed,
    /// An error in its own log.
    Logged,
}

/// A finding; see the module documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    pub class: LogFindingClass,
    pub kind: CauseKind,
    /// The line with the error.
    pub headline: String,
    /// All lines that belong to it, in their original format.
    pub block: Vec<String>,
    /// The number of that line, from 0.
    pub line: usize,
    /// The range of lines that contains it; other lines may be in between.
    pub lines: Range<usize>,
    /// The rank that wrote it.
    pub rank: Option<u32>,
}

impl LogFinding {
    /// Creates a finding that consists of one line.
    pub fn single_line(class: LogFindingClass, kind: CauseKind, headline: &str, at: usize) -> Self {
        let headline = headline.trim().to_owned();
        Self { class, kind, headline, block: Vec::new(), line: at, lines: at..at + 1, rank: None }
    }
}
