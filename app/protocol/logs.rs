//! `/api/queue/{id}/logs/…`: a log by its lines. They are counted from 1, as in the downloaded log.

use serde::{Deserialize, Serialize};

use crate::domain::ids::Attempt;

/// `GET /api/queue/{id}/logs/lines`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLinesQuery {
    /// Which attempt; left out, the newest.
    pub attempt: Option<u32>,
    /// The first line; left out, the last ones are told.
    pub from: Option<u64>,
    /// At most so many, 1 to 1000; 200 if left out.
    pub limit: Option<u32>,
    /// What to mark in them.
    pub q: Option<String>,
    /// Whether `q` is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Whether capital letters are others.
    #[serde(default)]
    pub case: bool,
}

/// `GET /api/queue/{id}/logs/lines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLines {
    /// Which attempt.
    pub attempt: Attempt,
    /// The first line's number.
    pub from: u64,
    /// Where it begins, in bytes; none if there is no line.
    pub offset: Option<u64>,
    /// The lines, in order. There may be fewer than were asked for, if they are long.
    pub lines: Vec<LogLine>,
    /// From this line on `q` was not looked for, because marking the lines before it took as much time as one answer may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmarked_from: Option<u64>,
    /// How many lines the log has now.
    pub total: u64,
    /// Whether the last of them has not ended.
    pub open: bool,
    /// How many bytes the log has now.
    pub size: u64,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLine {
    /// What it says: of a line that was written over, as by a progress bar, what was written last. At most 8 KiB, with
    /// the colours of a terminal, and bytes that are no UTF-8 replaced.
    pub text: String,
    /// How many more bytes it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// If it is the mark of a gap: how many bytes of the log are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
    /// Where `q` is found in the line, without its escape sequences: from which character to before which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<(u32, u32)>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// `GET /api/queue/{id}/logs/search`, the query string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogSearchQuery {
    /// Which attempt; left out, the newest.
    pub attempt: Option<u32>,
    /// What to look for in each line as it is shown, in 1 to 1000 bytes.
    pub q: String,
    /// Whether `q` is a regular expression.
    #[serde(default)]
    pub regex: bool,
    /// Whether capital letters are others.
    #[serde(default)]
    pub case: bool,
    /// The first line to look at; left out, the log's first, or its last if it is searched backward.
    pub from: Option<u64>,
    /// The line to stop before; left out, there is none.
    pub until: Option<u64>,
    /// Whether to look at the lines before, from `from` on, and not at those after it.
    #[serde(default)]
    pub backward: bool,
    /// Stop after so many lines that have it, at most 1000; 100 if left out. With 0 they are only counted.
    pub limit: Option<u32>,
}

/// `GET /api/queue/{id}/logs/search`: what one slice of the log has. A long log takes several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatches {
    /// Which attempt.
    pub attempt: Attempt,
    /// The lines that have it, in the order in which they were found.
    pub matches: Vec<LogMatch>,
    /// How many lines have it, of those that were looked at.
    pub count: u64,
    /// The line to go on from; none if nothing is left.
    pub next: Option<u64>,
    /// How many lines the log has now.
    pub total: u64,
}

/// A line that has what is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatch {
    /// Its number.
    pub line: u64,
    /// What stands there and around, in at most 200 characters.
    pub text: String,
}
