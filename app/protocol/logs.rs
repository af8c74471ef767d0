//! `/api/queue/{id}/logs/…`: a log by lines, numbered from 1 as in the downloaded log.

use serde::{Deserialize, Serialize};

use crate::domain::ids::AttemptNumber;
use crate::domain::log_text::links::LinkedService;
use crate::domain::time::Timestamp;

/// Query parameters of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogQuery {
    /// Attempt number [default: the latest].
    pub attempt: Option<u32>,
    /// Offset in bytes [default: as close to the end as `limit` allows].
    pub offset: Option<u64>,
    /// Maximum size in bytes.
    pub limit: Option<u32>,
    /// If present, the response is the whole log as plain text.
    pub raw: Option<String>,
    /// If present, the response is a stream of chunks as they arrive.
    pub follow: Option<String>,
}

/// Query string of `GET /api/queue/{id}/logs/lines`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLinesQuery {
    /// The attempt; if omitted, the newest.
    pub attempt: Option<u32>,
    /// The first line; if omitted, the last lines are returned.
    pub from: Option<u64>,
    /// Maximum number of lines, 1 to 1000; if omitted, 200.
    pub limit: Option<u32>,
    /// The text to mark.
    pub q: Option<String>,
    /// Whether `q` is a regular expression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regex: bool,
    /// Whether matching is case-sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub case: bool,
    /// Only lines with the prefix of this rank, such as `[rank3]:`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// With `rank` and without `from`: the last lines before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Whether to return when each line arrived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub times: bool,
}

/// `GET /api/queue/{id}/logs/lines`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLines {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// Number of the first line.
    pub from: u64,
    /// Byte offset of the first line; none if there is no line.
    pub offset: Option<u64>,
    /// The lines, in order. May be fewer than requested if they are long.
    pub lines: Vec<LogLine>,
    /// Matches were not searched from this line on, because the time limit for one response was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmarked_from: Option<u64>,
    /// With `rank`: there may be earlier lines before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<u64>,
    /// With `rank`: there may be later lines from this one on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<u64>,
    /// Total number of lines.
    pub total: u64,
    /// Whether the last line is incomplete.
    pub open: bool,
    /// Size of the log in bytes.
    pub size: u64,
}

/// A link in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLink {
    /// The service it leads to.
    pub service: LinkedService,
    /// The address; with `http://` it is of the worker's own network.
    pub url: String,
}

impl LogLink {
    /// A link, for tests.
    #[cfg(any(test, feature = "native"))]
    pub(super) fn example() -> Self {
        Self { service: LinkedService::WeightsAndBiases, url: "https://wandb.ai/ada/digits/runs/x1y2".to_owned() }
    }
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogLine {
    /// With `rank`: its number. Otherwise the lines follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The text. If a line was overwritten, as by a progress bar, the last version. At most 8 KiB, with terminal
    /// colors; invalid UTF-8 is replaced.
    pub text: String,
    /// With `times`: when the line began to arrive at the server, to the second, or in an attempt of more than an hour to
    /// about a thousandth of its duration. Missing if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_at: Option<Timestamp>,
    /// Number of further bytes that are not returned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// For a gap: the number of missing bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
    /// Matches of `q` in the line, without escape sequences: first character and end (exclusive).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<(u32, u32)>,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// Query string of `GET /api/queue/{id}/logs/search`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogSearchQuery {
    /// The attempt; if omitted, the newest.
    pub attempt: Option<u32>,
    /// The text to search for in each line, 1 to 1000 bytes.
    pub q: String,
    /// Whether `q` is a regular expression.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regex: bool,
    /// Whether matching is case-sensitive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub case: bool,
    /// The first line to search; if omitted, the first line of the log, or the last one with `backward`.
    pub from: Option<u64>,
    /// The line to stop before; if omitted, the end of the log.
    pub until: Option<u64>,
    /// Whether to search backward from `from`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backward: bool,
    /// Maximum number of matching lines, at most 1000; if omitted, 100. With 0 they are only counted.
    pub limit: Option<u32>,
}

/// `GET /api/queue/{id}/logs/search`: the matches in one part of the log. A long log takes several requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatches {
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The matching lines, in the order found.
    pub matches: Vec<LogMatch>,
    /// Number of matching lines in the part that was searched.
    pub count: u64,
    /// The line to continue from; none if the search is complete.
    pub next: Option<u64>,
    /// Total number of lines in the log.
    pub total: u64,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogMatch {
    /// The line's number.
    pub line: u64,
    /// The match and its context, at most 200 characters.
    pub text: String,
}
