//! The query language of lists: `gpu:a100* label.team=nlp -status:offline rack`.
//!
//! All terms must match. A word alone is searched in all names. `key:value` ignores case and matches a part, or, as a
//! glob with `*`, from the start of a part; `key=value` matches exactly; `key<value`, `<=`, `>` and `>=` compare. A `-`
//! prefix excludes the matches of a term. Terms with spaces or operators must be quoted.
//!
//! Which keys there are is up to the [`SearchFilter`] of a list.

mod pattern;
mod tokenizer;

use std::fmt;

pub use pattern::{TextPattern, escape_glob, unescape_glob};
pub use tokenizer::{LastTerm, SearchOperator, quote};
use tokenizer::{RawTerm, tokenize};

/// Maximum length of a query, in characters.
pub const MAX_QUERY_CHARS: usize = 1_000;
/// Maximum number of terms of a query: each may be compared with everything in a list.
pub const MAX_TERMS: usize = 32;

/// What a term can filter by.
pub trait SearchFilter: fmt::Display + Sized {
    /// The available keys, for error messages.
    const KEYS_HELP: &'static str;

    /// The filter of a word alone.
    fn any(word: &str) -> Self;

    /// Returns whether there is such a key, with this operator.
    fn has_key(key: &str, operator: SearchOperator) -> bool;

    /// Returns whether the value of this key can be empty.
    fn may_be_empty(_key: &str, _operator: SearchOperator) -> bool {
        false
    }

    /// Parses the value of an existing key.
    ///
    /// # Errors
    ///
    /// Returns the allowed values if it is not one of them.
    fn parse(key: &str, operator: SearchOperator, value: &str) -> Result<Self, AllowedTermValues>;
}

/// A query; see the module documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerms<F>(pub Vec<SearchTerm<F>>);

/// A term of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm<F> {
    /// Whether matches are excluded.
    pub negated: bool,
    /// The filter.
    pub filter: F,
}

/// Which values a term can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedTermValues {
    /// These.
    OneOf(String),
    /// Values such as these, which need no translation.
    Like(&'static str),
}

/// Why a term is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryParseError {
    /// The key is unknown.
    UnknownKey {
        /// The invalid term.
        word: String,
        /// The available keys.
        keys: &'static str,
    },
    /// The value is not one of the allowed ones.
    InvalidValue {
        /// The invalid term.
        word: String,
        /// The allowed values.
        allowed: AllowedTermValues,
    },
    /// The value is missing.
    MissingValue(String),
    /// A quotation mark is not closed.
    UnclosedQuote(String),
    /// The query is longer than [`MAX_QUERY_CHARS`].
    TooLong,
    /// The query has more than [`MAX_TERMS`].
    TooManyTerms,
}

impl<F> Default for SearchTerms<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: SearchFilter> SearchTerms<F> {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// Returns the first invalid term; no term is ignored.
    pub fn parse(text: &str) -> Result<Self, QueryParseError> {
        if text.chars().count() > MAX_QUERY_CHARS {
            return Err(QueryParseError::TooLong);
        }
        let terms = tokenize(text)?;
        if terms.len() > MAX_TERMS {
            return Err(QueryParseError::TooManyTerms);
        }
        terms.into_iter().map(parse_term).collect::<Result<_, _>>().map(Self)
    }
}

impl<F: PartialEq> SearchTerms<F> {
    /// Adds a filter, unless the query has it.
    pub fn require(&mut self, filter: F) {
        let term = SearchTerm { negated: false, filter };
        if !self.0.contains(&term) {
            self.0.push(term);
        }
    }
}

fn parse_term<F: SearchFilter>(term: RawTerm) -> Result<SearchTerm<F>, QueryParseError> {
    let negated = term.negated;
    let any = |text: &str| SearchTerm { negated, filter: F::any(text) };
    let Some((key, operator, value)) = term.parts() else { return Ok(any(&term.text)) };
    if !F::has_key(key, operator) {
        return match operator {
            SearchOperator::Contains => Err(QueryParseError::UnknownKey { word: term.text, keys: F::KEYS_HELP }),
            // In the format in which labels are shown: `team=nlp`.
            _ => Ok(any(&term.text)),
        };
    }
    if value.is_empty() && !F::may_be_empty(key, operator) {
        return Err(QueryParseError::MissingValue(term.text));
    }
    let filter = F::parse(key, operator, value);
    let filter = filter.map_err(|allowed| QueryParseError::InvalidValue { word: term.text.clone(), allowed })?;
    Ok(SearchTerm { negated, filter })
}

/// Finds a keyword, ignoring case.
///
/// # Errors
///
/// Returns all keywords if the value is none of them.
pub fn parse_keyword<T>(
    value: &str,
    keywords: impl IntoIterator<Item = (&'static str, T)>,
) -> Result<T, AllowedTermValues> {
    let mut names = Vec::new();
    for (keyword, parsed) in keywords {
        if keyword.eq_ignore_ascii_case(value) {
            return Ok(parsed);
        }
        names.push(keyword);
    }
    Err(AllowedTermValues::OneOf(names.join(", ")))
}

/// Text that parses to the same query.
impl<F: fmt::Display> fmt::Display for SearchTerms<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

impl<F: fmt::Display> fmt::Display for SearchTerm<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.negated { "-" } else { "" }, self.filter)
    }
}
