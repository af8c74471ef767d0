//! Problems of worker search queries that cannot be parsed.

use app::domain::worker_search::query::{KEYS_HELP, MAX_QUERY_CHARS, QueryParseError};

/// Returns the reason as a sentence.
pub fn describe(error: &QueryParseError) -> String {
    match error {
        QueryParseError::UnknownKey(word) => {
            format!("Unknown filter {word:?}. Available: {KEYS_HELP}. Use quotes to search for the literal text.")
        }
        QueryParseError::InvalidValue { word, allowed } => {
            format!("Invalid value in {word:?}. Allowed: {allowed}.")
        }
        QueryParseError::MissingValue(word) => format!("Missing value after {word:?}."),
        QueryParseError::UnclosedQuote(word) => format!("Unclosed quote before {word:?}."),
        QueryParseError::TooLong => format!("The query has more than {MAX_QUERY_CHARS} characters."),
    }
}

/// Returns the parameters for a localized message.
pub fn parameters(error: &QueryParseError) -> impl Iterator<Item = (&'static str, &str)> {
    let (why, word, allowed) = match error {
        QueryParseError::UnknownKey(word) => ("key", word.as_str(), KEYS_HELP),
        QueryParseError::InvalidValue { word, allowed } => ("value", word.as_str(), allowed.as_str()),
        QueryParseError::MissingValue(word) => ("empty", word.as_str(), ""),
        QueryParseError::UnclosedQuote(word) => ("quote", word.as_str(), ""),
        QueryParseError::TooLong => ("long", "", ""),
    };
    [("why", why), ("word", word), ("allowed", allowed)].into_iter()
}
