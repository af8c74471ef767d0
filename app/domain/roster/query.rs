//! A question for workers in one line: `gpu:a100* label.team=nlp -status:offline rack`.
//!
//! Each word narrows. A word alone is looked for in whatever a worker is known by. `key:value` asks for one thing, in any
//! case and from the beginning of any of its parts if it has a `*`; `key=value` asks for exactly that. A `-` before a word
//! leaves out what it fits. What has blanks or a `:` stands in quotes.

use std::fmt;

use crate::domain::worker::Kind;

/// The longest question, in characters.
pub const LONGEST: usize = 1_000;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query(pub Vec<Term>);

/// One word of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Whether those are left out that it fits.
    pub negated: bool,
    /// What it asks.
    pub test: Test,
}

/// What is asked of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Something that it is known by: name, id, host, GPUs, labels.
    Any(Pattern),
    /// Where it stands.
    Status(Standing),
    /// Whether it leaves after a job.
    Kind(Kind),
    /// Whether its agent verifies the server's certificate.
    Tls(bool),
    /// The model of one of its GPUs.
    Gpu(Pattern),
    /// Its agent's version.
    Version(Pattern),
    /// Its host's name.
    Host(Pattern),
    /// Its name.
    Name(Pattern),
    /// Its id.
    Id(Pattern),
    /// One of its labels.
    Label {
        /// Its key.
        key: String,
        /// Its value.
        value: Pattern,
    },
}

/// What a text is to be like; both may be globs ([`super::super::glob`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// The whole of it, in this case.
    Whole(String),
    /// A part of it, in any case; a glob fits from the beginning of a part.
    Part(String),
}

/// Where a worker stands, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Registered, not listening.
    Connecting,
    /// Nothing to do.
    Idle,
    /// With jobs.
    Busy,
    /// To take nothing new.
    Draining,
    /// Not connected; those that were never heard of too.
    Offline,
    /// Never heard of.
    Never,
}

impl Standing {
    /// Each, in the order of a life.
    pub const ALL: [Self; 6] = [Self::Connecting, Self::Idle, Self::Busy, Self::Draining, Self::Offline, Self::Never];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Draining => "draining",
            Self::Offline => "offline",
            Self::Never => "never",
        }
    }
}

/// Why a word is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misread {
    /// Nothing of this name can be asked for.
    Key(String),
    /// It takes one of some words.
    Value {
        /// Which word it was.
        word: String,
        /// Which it takes.
        allowed: String,
    },
    /// The value is missing.
    Empty(String),
    /// A quotation mark is open.
    Quote(String),
    /// It is longer than [`LONGEST`].
    Long,
}

/// What can be asked for, for people.
pub const KEYS: &str = "status, type, gpu, label.…, version, tls, host, name, id";

impl Query {
    /// Reads a question.
    ///
    /// # Errors
    /// The first word that is not understood: nothing is passed over.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        if text.chars().count() > LONGEST {
            return Err(Misread::Long);
        }
        split(text)?.into_iter().map(Word::read).collect::<Result<_, _>>().map(Self)
    }
}

/// A word as it stands there.
#[derive(Default)]
struct Word {
    negated: bool,
    text: String,
    /// Where the first `:` or `=` is that is not in quotes, and which.
    at: Option<(usize, char)>,
    any: bool,
}

fn split(text: &str) -> Result<Vec<Word>, Misread> {
    let (mut words, mut word, mut quoted) = (Vec::new(), Word::default(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => (quoted, word.any) = (!quoted, true),
            '\\' if quoted && chars.peek().is_some_and(|next| ['"', '\\'].contains(next)) => {
                word.text.extend(chars.next());
            }
            c if c.is_whitespace() && !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| word.any));
            }
            '-' if !word.any && !word.negated && chars.peek().is_some_and(|next| !next.is_whitespace()) => {
                word.negated = true;
            }
            c => {
                if !quoted && word.at.is_none() && [':', '='].contains(&c) {
                    word.at = Some((word.text.len(), c));
                }
                word.text.push(c);
                word.any = true;
            }
        }
    }
    if quoted {
        return Err(Misread::Quote(word.text));
    }
    words.extend(Some(word).filter(|word| word.any));
    Ok(words)
}

impl Word {
    fn read(self) -> Result<Term, Misread> {
        let negated = self.negated;
        let Some((at, sign)) = self.at else {
            return Ok(Term { negated, test: Test::Any(Pattern::Part(self.text.to_lowercase())) });
        };
        let (key, value) = (self.text[..at].to_owned(), &self.text[at + 1..]);
        let pattern = match sign {
            ':' => Pattern::Part(value.to_lowercase()),
            _ => Pattern::Whole(value.to_owned()),
        };
        // A label may be empty, and exactly that may be asked for.
        let may_be_empty = key.starts_with("label.") && sign == '=';
        let Some(test) = test(&key, value, pattern)? else {
            return match sign {
                ':' => Err(Misread::Key(self.text)),
                // As labels are shown: `team=nlp`.
                _ => Ok(Term { negated, test: Test::Any(Pattern::Part(self.text.to_lowercase())) }),
            };
        };
        if value.is_empty() && !may_be_empty { Err(Misread::Empty(self.text)) } else { Ok(Term { negated, test }) }
    }
}

/// What a key asks with its value; none if there is no such key.
fn test(key: &str, value: &str, pattern: Pattern) -> Result<Option<Test>, Misread> {
    if value.is_empty() && ["status", "type", "tls"].contains(&key) {
        return Err(Misread::Empty(format!("{key}:")));
    }
    Ok(Some(match key {
        "status" => Test::Status(one(key, value, Standing::ALL.map(|word| (word.as_str(), word)))?),
        "type" => Test::Kind(one(key, value, [Kind::Persistent, Kind::Ephemeral].map(|kind| (kind.as_str(), kind)))?),
        "tls" => Test::Tls(one(key, value, [("on", true), ("off", false)])?),
        "gpu" => Test::Gpu(pattern),
        "version" => Test::Version(pattern),
        "host" => Test::Host(pattern),
        "name" => Test::Name(pattern),
        "id" => Test::Id(pattern),
        _ => match key.strip_prefix("label.") {
            Some(key) if !key.is_empty() => Test::Label { key: key.to_owned(), value: pattern },
            _ => return Ok(None),
        },
    }))
}

fn one<T: Copy, const N: usize>(key: &str, value: &str, words: [(&str, T); N]) -> Result<T, Misread> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value)).map(|(_, what)| *what);
    found.ok_or_else(|| Misread::Value {
        word: format!("{key}:{value}"),
        allowed: words.map(|(word, _)| word).join(", "),
    })
}

/// A text as a word that asks for exactly that, whatever is in it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !['"', '\\', ':', '='].contains(&c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text as a glob that nothing else fits.
pub fn literal(text: &str) -> String {
    let mut glob = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => glob.extend(['[', c, ']']),
            c => glob.push(c),
        }
    }
    glob
}

/// The text that a [`literal`] was made of.
pub fn plain(glob: &str) -> String {
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

/// As it is read again.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negated { "-" } else { "" })?;
        match &self.test {
            Test::Any(Pattern::Part(text) | Pattern::Whole(text)) => f.write_str(&quoted(text)),
            Test::Status(standing) => write!(f, "status:{}", standing.as_str()),
            Test::Kind(kind) => write!(f, "type:{}", kind.as_str()),
            Test::Tls(on) => write!(f, "tls:{}", if *on { "on" } else { "off" }),
            Test::Gpu(pattern) => write!(f, "gpu{pattern}"),
            Test::Version(pattern) => write!(f, "version{pattern}"),
            Test::Host(pattern) => write!(f, "host{pattern}"),
            Test::Name(pattern) => write!(f, "name{pattern}"),
            Test::Id(pattern) => write!(f, "id{pattern}"),
            Test::Label { key, value } => write!(f, "label.{}{value}", quoted(key)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(text) => write!(f, "={}", quoted(text)),
            Self::Part(text) => write!(f, ":{}", quoted(text)),
        }
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
