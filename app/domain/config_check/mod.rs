//! Checks the text of a configuration: whether it is JSON, and what its author probably did not intend.
//!
//! The editor in the browser and the server run the same check. Only syntax errors prevent saving: the trainer may know
//! more keys than the table of [`keys`].

pub mod edit;
pub mod keys;
pub mod scan;

use std::collections::BTreeMap;
use std::ops::Range;

use keys::{AgentUse, KeyKind, KnownKey, bare_name, closest};
use scan::{Member, Scanned, SyntaxFault, Value};

/// Which rules a file must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedFile {
    /// `config.json`: an object with keys of the trainer.
    Config,
    /// Another JSON file.
    Json,
}

/// What was found at a place of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The place, in bytes.
    pub span: Range<usize>,
    /// What it is.
    pub kind: FindingKind,
}

/// What can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingKind {
    /// The text is not JSON.
    Syntax(SyntaxFault),
    /// `config.json` is JSON, but not an object.
    NotAnObject,
    /// An object has this key twice; the later value counts.
    DuplicateKey(String),
    /// A key that is not known, but close to one that is.
    SimilarKey {
        /// As it is written.
        key: String,
        /// The known key, in the same spelling.
        known: String,
    },
    /// A value that the key cannot have.
    WrongKind {
        /// As it is written.
        key: String,
        /// What it should be.
        expected: KeyKind,
    },
    /// A value that the agent changes.
    ChangedByAgent {
        /// As it is written.
        key: String,
        /// How it changes.
        change: AgentUse,
    },
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It prevents saving.
    Error,
    /// Probably a mistake.
    Warning,
    /// Good to know.
    Note,
}

impl FindingKind {
    /// Returns how serious it is.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Syntax(_) | Self::NotAnObject => Severity::Error,
            Self::DuplicateKey(_) | Self::SimilarKey { .. } | Self::WrongKind { .. } => Severity::Warning,
            Self::ChangedByAgent { .. } => Severity::Note,
        }
    }
}

/// Returns what is wrong with a text, in its order.
pub fn check(text: &str, file: CheckedFile) -> Vec<Finding> {
    let scanned = match scan::scan(text) {
        Ok(scanned) => scanned,
        Err((fault, span)) => return vec![Finding { span, kind: FindingKind::Syntax(fault) }],
    };
    let Scanned { root, duplicates } = scanned;
    let mut findings: Vec<Finding> =
        duplicates.into_iter().map(|(key, span)| Finding { span, kind: FindingKind::DuplicateKey(key) }).collect();
    match (file, root.members()) {
        (CheckedFile::Json, _) => {}
        (CheckedFile::Config, Some(members)) => {
            findings.extend(duplicate_spellings(members));
            findings.extend(members.iter().filter_map(key_finding));
        }
        (CheckedFile::Config, None) => {
            findings.push(Finding { span: root.span, kind: FindingKind::NotAnObject });
        }
    }
    findings.sort_by_key(|finding| finding.span.start);
    findings
}

/// Keys that are set as `key` and as `--key`, which are the same for the trainer.
fn duplicate_spellings(members: &[Member]) -> impl Iterator<Item = Finding> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    members.iter().filter_map(move |member| {
        let earlier = *first.entry(bare_name(&member.key)).or_insert(&member.key);
        (earlier != member.key)
            .then(|| Finding { span: member.key_span.clone(), kind: FindingKind::DuplicateKey(member.key.clone()) })
    })
}

fn key_finding(member: &Member) -> Option<Finding> {
    let key = member.key.clone();
    let at = |span: &Range<usize>, kind| Some(Finding { span: span.clone(), kind });
    let Some(known) = KnownKey::find(&key) else {
        let known = closest(&key)?;
        return at(&member.key_span, FindingKind::SimilarKey { key, known });
    };
    if !known.kind.accepts(&member.value) {
        return at(&member.value_span, FindingKind::WrongKind { key, expected: known.kind });
    }
    let change = known.agent?;
    (member.value != Value::Null).then_some(())?;
    at(&member.key_span, FindingKind::ChangedByAgent { key, change })
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// Returns the place of a byte.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

/// Returns the position of a byte as browsers count: in UTF-16 units.
pub fn utf16_position(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).encode_utf16().count()
}

#[cfg(test)]
mod tests;
