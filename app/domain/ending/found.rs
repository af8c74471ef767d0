//! Something in a log that may be why the trainer ended.

use std::ops::Range;

use super::Kind;

/// How much a finding counts: what stands first is rather the cause than what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// An exception that nobody caught.
    Exception,
    /// The process itself fell: a segmentation fault, a C++ exception, a time-out that aborts it.
    Crash,
    /// It never began: a wrong option, a file or program that is not there.
    Refused,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// Another rank was gone.
    Disconnected,
    /// A launcher or a shell says which signal ended it.
    Killed,
    /// Its own log calls it an error.
    Logged,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub class: Class,
    pub kind: Kind,
    /// The line that says it.
    pub headline: String,
    /// All that belongs to it, in its own shape.
    pub block: Vec<String>,
    /// The number of that line, from 0.
    pub at: usize,
    /// The lines that it takes, and others between them.
    pub lines: Range<usize>,
    /// Whose it is.
    pub rank: Option<u32>,
}

impl Found {
    /// One line that says it all.
    pub fn line(class: Class, kind: Kind, headline: &str, at: usize) -> Self {
        let headline = headline.trim().to_owned();
        Self { class, kind, headline, block: Vec::new(), at, lines: at..at + 1, rank: None }
    }
}
