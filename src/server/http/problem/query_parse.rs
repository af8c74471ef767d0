//! Problems of search queries that cannot be parsed.

use app::domain::search_terms::{AllowedTermValues, MAX_QUERY_CHARS, MAX_TERMS, QueryParseError};

use super::{Sentence, escaped};

/// Returns the reason.
pub fn sentence(error: &QueryParseError) -> Sentence {
    match error {
        QueryParseError::UnknownKey { word, keys } => {
            Sentence::InvalidSearchKey { word: escaped(word), allowed: (*keys).to_owned() }
        }
        QueryParseError::InvalidValue { word, allowed: AllowedTermValues::OneOf(allowed) } => {
            Sentence::InvalidSearchValue { word: escaped(word), allowed: allowed.clone() }
        }
        QueryParseError::InvalidValue { word, allowed: AllowedTermValues::Like(examples) } => {
            Sentence::InvalidSearchExample { word: escaped(word), allowed: (*examples).to_owned() }
        }
        QueryParseError::MissingValue(word) => Sentence::InvalidSearchEmpty { word: escaped(word) },
        QueryParseError::UnclosedQuote(word) => Sentence::InvalidSearchQuote { word: escaped(word) },
        QueryParseError::TooLong => Sentence::InvalidSearchLong { max: MAX_QUERY_CHARS.to_string() },
        QueryParseError::TooManyTerms => Sentence::InvalidSearchTerms { max: MAX_TERMS.to_string() },
    }
}

/// Returns the fields of the document.
pub fn parameters(error: &QueryParseError) -> impl Iterator<Item = (&'static str, &str)> {
    let (why, word, allowed) = match error {
        QueryParseError::UnknownKey { word, keys } => ("key", word.as_str(), *keys),
        QueryParseError::InvalidValue { word, allowed: AllowedTermValues::OneOf(allowed) } => {
            ("value", word.as_str(), allowed.as_str())
        }
        QueryParseError::InvalidValue { word, allowed: AllowedTermValues::Like(examples) } => {
            ("value", word.as_str(), *examples)
        }
        QueryParseError::MissingValue(word) => ("empty", word.as_str(), ""),
        QueryParseError::UnclosedQuote(word) => ("quote", word.as_str(), ""),
        QueryParseError::TooLong => ("long", "", ""),
        QueryParseError::TooManyTerms => ("terms", "", ""),
    };
    [("why", why), ("word", word), ("allowed", allowed)].into_iter()
}
