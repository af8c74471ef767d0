//! Text patterns.

use std::fmt;

use super::tokenizer::{SearchOperator, quote};
use crate::domain::glob;
use crate::domain::ids::matches_partial_id;

/// A text pattern; both kinds may be globs ([`crate::domain::glob`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPattern {
    /// The whole text, case-sensitive.
    Exact(String),
    /// A part, ignoring case; a glob matches from the start of a part.
    Partial(String),
}

impl TextPattern {
    /// The pattern of a value after `:` or `=`.
    pub fn new(operator: SearchOperator, value: &str) -> Self {
        match operator {
            SearchOperator::Contains => Self::partial(value),
            _ => Self::Exact(value.to_owned()),
        }
    }

    /// A pattern for a part.
    pub fn partial(value: &str) -> Self {
        Self::Partial(value.to_lowercase())
    }

    /// A pattern that matches exactly this text.
    pub fn literal(text: &str) -> Self {
        Self::Exact(escape_glob(text))
    }

    /// Returns whether the pattern is the beginning or the end of an ID.
    pub fn matches_id(&self, id: &str) -> bool {
        matches!(self, Self::Partial(part) if matches_partial_id(id, part))
    }

    /// Returns whether the pattern matches a text.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(glob) => glob::matches(glob, text),
            Self::Partial(part) if !part.contains(['*', '?', '[']) => contains_ignore_case(text, part),
            Self::Partial(glob) => {
                let text = text.to_lowercase();
                word_starts(&text).any(|part| glob::matches(glob, part))
            }
        }
    }
}

/// Returns whether a text contains a part, which is in lower case.
fn contains_ignore_case(text: &str, part: &str) -> bool {
    let Some((first, rest)) = part.as_bytes().split_first() else { return true };
    if !text.is_ascii() {
        return text.to_lowercase().contains(part);
    }
    // The usual case, without copying each name of the fleet.
    let starts_with_rest = |text: &[u8]| text.get(..rest.len()).is_some_and(|text| text.eq_ignore_ascii_case(rest));
    let mut text = text.as_bytes();
    while let Some(at) = text.iter().position(|byte| byte.to_ascii_lowercase() == *first) {
        text = &text[at + 1..];
        if starts_with_rest(text) {
            return true;
        }
    }
    false
}

/// Returns the text from its start and from the start of each of its parts.
fn word_starts(text: &str) -> impl Iterator<Item = &str> {
    let is_word_start = |at: usize| text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
    let starts = text.char_indices().map(|(at, _)| at).filter(move |at| is_word_start(*at));
    std::iter::once(text).chain(starts.filter(|at| *at > 0).map(|at| &text[at..]))
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

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => write!(f, "={}", quote(text)),
            Self::Partial(text) => write!(f, ":{}", quote(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn partial_match_is_found_anywhere(before in ".{0,8}", part in "[a-zü0-9]{1,6}", after in ".{0,8}") {
            let text = format!("{before}{}{after}", part.to_uppercase());
            prop_assert!(TextPattern::Partial(part).matches(&text));
        }

        #[test]
        fn escaped_glob_matches_only_itself(text in "[a-c*?\\[\\]!-]{0,8}", other in "[a-c*?\\[\\]!-]{0,8}") {
            prop_assert_eq!(TextPattern::literal(&text).matches(&other), text == other);
            prop_assert_eq!(unescape_glob(&escape_glob(&text)), text);
        }
    }
}
