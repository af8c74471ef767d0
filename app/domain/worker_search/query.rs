//! The query language for workers: `gpu:a100* label.team=nlp -status:offline rack`.
//!
//! All terms must match. A word alone is searched in all names of a worker. `key:value` ignores case and matches a
//! part, or, as a glob with `*`, from the start of a part; `key=value` matches exactly. A `-` prefix excludes the
//! matches of a term. Terms with spaces or `:` must be quoted.

use std::fmt;

use crate::domain::worker::WorkerKind;

/// Maximum length of a query, in characters.
pub const MAX_QUERY_CHARS: usize = 1_000;

/// A query; see the module documentation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerSearchQuery(pub Vec<SearchTerm>);

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm {
    /// Whether matches are excluded.
    pub negated: bool,
    /// The filter.
    pub filter: WorkerFilter,
}

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

/// A text pattern; both kinds may be globs ([`super::super::glob`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPattern {
    /// The whole text, case-sensitive.
    Exact(String),
    /// A part, ignoring case; a glob matches from the start of a part.
    Partial(String),
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

/// Why a term is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryParseError {
    /// The key is unknown.
    UnknownKey(String),
    /// The value is not one of the allowed ones.
    InvalidValue {
        /// The invalid term.
        word: String,
        /// The allowed values.
        allowed: String,
    },
    /// The value is missing.
    MissingValue(String),
    /// A quotation mark is not closed.
    UnclosedQuote(String),
    /// The query is longer than [`MAX_QUERY_CHARS`].
    TooLong,
}

/// The available keys, for error messages.
pub const KEYS_HELP: &str = "status, type, gpu, label.…, version, tls, host, name, id";

impl WorkerSearchQuery {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// Returns the first invalid term; no term is ignored.
    pub fn parse(text: &str) -> Result<Self, QueryParseError> {
        if text.chars().count() > MAX_QUERY_CHARS {
            return Err(QueryParseError::TooLong);
        }
        tokenize(text)?.into_iter().map(RawTerm::into_term).collect::<Result<_, _>>().map(Self)
    }
}

/// A term as written.
#[derive(Default)]
struct RawTerm {
    negated: bool,
    text: String,
    /// The position of the first unquoted `:` or `=`, and the character.
    separator: Option<(usize, char)>,
    has_content: bool,
}

fn tokenize(text: &str) -> Result<Vec<RawTerm>, QueryParseError> {
    let (mut terms, mut term, mut quoted) = (Vec::new(), RawTerm::default(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => (quoted, term.has_content) = (!quoted, true),
            '\\' if quoted && chars.peek().is_some_and(|next| ['"', '\\'].contains(next)) => {
                term.text.extend(chars.next());
            }
            c if c.is_whitespace() && !quoted => {
                terms.extend(Some(std::mem::take(&mut term)).filter(|term| term.has_content));
            }
            '-' if !term.has_content && !term.negated && chars.peek().is_some_and(|next| !next.is_whitespace()) => {
                term.negated = true;
            }
            c => {
                if !quoted && term.separator.is_none() && [':', '='].contains(&c) {
                    term.separator = Some((term.text.len(), c));
                }
                term.text.push(c);
                term.has_content = true;
            }
        }
    }
    if quoted {
        return Err(QueryParseError::UnclosedQuote(term.text));
    }
    terms.extend(Some(term).filter(|term| term.has_content));
    Ok(terms)
}

impl RawTerm {
    fn into_term(self) -> Result<SearchTerm, QueryParseError> {
        let negated = self.negated;
        let Some((at, separator)) = self.separator else {
            return Ok(SearchTerm {
                negated,
                filter: WorkerFilter::Any(TextPattern::Partial(self.text.to_lowercase())),
            });
        };
        let (key, value) = (self.text[..at].to_owned(), &self.text[at + 1..]);
        let pattern = match separator {
            ':' => TextPattern::Partial(value.to_lowercase()),
            _ => TextPattern::Exact(value.to_owned()),
        };
        // Labels can be empty, so a query for the empty value is valid.
        let may_be_empty = key.starts_with("label.") && separator == '=';
        let Some(filter) = parse_filter(&key, value, pattern)? else {
            return match separator {
                ':' => Err(QueryParseError::UnknownKey(self.text)),
                // In the format in which labels are shown: `team=nlp`.
                _ => Ok(SearchTerm {
                    negated,
                    filter: WorkerFilter::Any(TextPattern::Partial(self.text.to_lowercase())),
                }),
            };
        };
        if value.is_empty() && !may_be_empty {
            Err(QueryParseError::MissingValue(self.text))
        } else {
            Ok(SearchTerm { negated, filter })
        }
    }
}

/// Parses a filter from key and value; none if the key is unknown.
fn parse_filter(key: &str, value: &str, pattern: TextPattern) -> Result<Option<WorkerFilter>, QueryParseError> {
    if value.is_empty() && ["status", "type", "tls"].contains(&key) {
        return Err(QueryParseError::MissingValue(format!("{key}:")));
    }
    Ok(Some(match key {
        "status" => {
            WorkerFilter::Status(parse_keyword(key, value, WorkerSearchStatus::ALL.map(|word| (word.as_str(), word)))?)
        }
        "type" => WorkerFilter::Kind(parse_keyword(
            key,
            value,
            [WorkerKind::Persistent, WorkerKind::Ephemeral].map(|kind| (kind.as_str(), kind)),
        )?),
        "tls" => WorkerFilter::Tls(parse_keyword(key, value, [("on", true), ("off", false)])?),
        "gpu" => WorkerFilter::Gpu(pattern),
        "version" => WorkerFilter::Version(pattern),
        "host" => WorkerFilter::Host(pattern),
        "name" => WorkerFilter::Name(pattern),
        "id" => WorkerFilter::Id(pattern),
        _ => match key.strip_prefix("label.") {
            Some(key) if !key.is_empty() => WorkerFilter::Label { key: key.to_owned(), value: pattern },
            _ => return Ok(None),
        },
    }))
}

fn parse_keyword<T: Copy, const N: usize>(
    key: &str,
    value: &str,
    keywords: [(&str, T); N],
) -> Result<T, QueryParseError> {
    let found = keywords.iter().find(|(keyword, _)| keyword.eq_ignore_ascii_case(value)).map(|(_, parsed)| *parsed);
    found.ok_or_else(|| QueryParseError::InvalidValue {
        word: format!("{key}:{value}"),
        allowed: keywords.map(|(keyword, _)| keyword).join(", "),
    })
}

/// Quotes a text, so that it is read literally.
pub fn quote(text: &str) -> String {
    let needs_no_quotes = |c: char| !c.is_whitespace() && !['"', '\\', ':', '='].contains(&c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(needs_no_quotes) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Escapes a text as a glob that matches only this text.
pub fn escape_glob(text: &str) -> String {
    let mut glob = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    glob
}

/// The inverse of [`escape_glob`].
pub fn unescape_glob(glob: &str) -> String {
    let mut chars = glob.chars();
    let mut text = String::with_capacity(glob.len());
    while let Some(c) = chars.next() {
        let escaped = if c == '[' { chars.next() } else { None };
        if escaped.is_some() {
            chars.next();
        }
        text.push(escaped.unwrap_or(c));
    }
    text
}

/// Text that parses to the same query.
impl fmt::Display for WorkerSearchQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Display for SearchTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negated { "-" } else { "" })?;
        match &self.filter {
            WorkerFilter::Any(TextPattern::Partial(text) | TextPattern::Exact(text)) => f.write_str(&quote(text)),
            WorkerFilter::Status(status) => write!(f, "status:{}", status.as_str()),
            WorkerFilter::Kind(kind) => write!(f, "type:{}", kind.as_str()),
            WorkerFilter::Tls(on) => write!(f, "tls:{}", if *on { "on" } else { "off" }),
            WorkerFilter::Gpu(pattern) => write!(f, "gpu{pattern}"),
            WorkerFilter::Version(pattern) => write!(f, "version{pattern}"),
            WorkerFilter::Host(pattern) => write!(f, "host{pattern}"),
            WorkerFilter::Name(pattern) => write!(f, "name{pattern}"),
            WorkerFilter::Id(pattern) => write!(f, "id{pattern}"),
            WorkerFilter::Label { key, value } => write!(f, "label.{}{value}", quote(key)),
        }
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "={}", quote(text)),
            Self::Partial(text) => write!(f, ":{}", quote(text)),
        }
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
