//! What workers can be filtered by, in the query language of [`search_terms`](crate::domain::search_terms).

use std::fmt;

use crate::domain::search_terms::{
    AllowedTermValues, SearchFilter, SearchOperator, SearchTerms, TextPattern, parse_keyword, quote,
};
use crate::domain::worker::WorkerKind;

/// A query for workers.
pub type WorkerSearchQuery = SearchTerms<WorkerFilter>;

/// A filter on workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerFilter {
    /// Name, ID, host, GPUs or labels.
    Any(TextPattern),
    /// The status.
    Status(WorkerSearchStatus),
    /// Ephemeral or persistent.
    Kind(WorkerKind),
    /// Whether its agent verifies the server's certificate.
    Tls(bool),
    /// The model of one of its GPUs.
    Gpu(TextPattern),
    /// Its agent's version.
    Version(TextPattern),
    /// Its host's name.
    Host(TextPattern),
    /// Its name.
    Name(TextPattern),
    /// Its id.
    Id(TextPattern),
    /// One of its labels.
    Label {
        /// Its key.
        key: String,
        /// The label's value.
        value: TextPattern,
    },
}

/// The status of a worker in queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerSearchStatus {
    /// Registered, without a stream.
    Connecting,
    /// Connected, without jobs.
    Idle,
    /// Connected, with jobs.
    Busy,
    /// Accepts no new jobs.
    Draining,
    /// Not connected, including workers that never connected.
    Offline,
    /// Never connected.
    NeverConnected,
}

impl WorkerSearchStatus {
    /// All statuses, in the order of the life cycle.
    pub const ALL: [Self; 6] =
        [Self::Connecting, Self::Idle, Self::Busy, Self::Draining, Self::Offline, Self::NeverConnected];

    /// Returns the name of the status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Offline => "offline",
            Self::NeverConnected => "never",
        }
    }
}

impl SearchFilter for WorkerFilter {
    const KEYS_HELP: &'static str = "status, type, gpu, label.…, version, tls, host, name, id";

    fn any(word: &str) -> Self {
        Self::Any(TextPattern::partial(word))
    }

    fn has_key(key: &str, operator: SearchOperator) -> bool {
        let is_label = key.strip_prefix("label.").is_some_and(|key| !key.is_empty());
        let is_field = ["status", "type", "gpu", "version", "tls", "host", "name", "id"].contains(&key);
        (is_label || is_field) && !operator.is_comparison()
    }

    /// Labels can be empty.
    fn may_be_empty(key: &str, operator: SearchOperator) -> bool {
        key.starts_with("label.") && operator == SearchOperator::Equals
    }

    fn parse(key: &str, operator: SearchOperator, value: &str) -> Result<Self, AllowedTermValues> {
        let pattern = TextPattern::new(operator, value);
        let kinds = [WorkerKind::Persistent, WorkerKind::Ephemeral];
        Ok(match key {
            "status" => Self::Status(parse_keyword(value, WorkerSearchStatus::ALL.map(|word| (word.as_str(), word)))?),
            "type" => Self::Kind(parse_keyword(value, kinds.map(|kind| (kind.as_str(), kind)))?),
            "tls" => Self::Tls(parse_keyword(value, [("on", true), ("off", false)])?),
            "gpu" => Self::Gpu(pattern),
            "version" => Self::Version(pattern),
            "host" => Self::Host(pattern),
            "name" => Self::Name(pattern),
            "id" => Self::Id(pattern),
            _ => Self::Label { key: key.strip_prefix("label.").unwrap_or(key).to_owned(), value: pattern },
        })
    }
}

impl fmt::Display for WorkerFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(TextPattern::Partial(text) | TextPattern::Exact(text)) => f.write_str(&quote(text)),
            Self::Status(status) => write!(f, "status:{}", status.as_str()),
            Self::Kind(kind) => write!(f, "type:{}", kind.as_str()),
            Self::Tls(on) => write!(f, "tls:{}", if *on { "on" } else { "off" }),
            Self::Gpu(pattern) => write!(f, "gpu{pattern}"),
            Self::Version(pattern) => write!(f, "version{pattern}"),
            Self::Host(pattern) => write!(f, "host{pattern}"),
            Self::Name(pattern) => write!(f, "name{pattern}"),
            Self::Id(pattern) => write!(f, "id{pattern}"),
            Self::Label { key, value } => write!(f, "label.{}{value}", quote(key)),
        }
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
