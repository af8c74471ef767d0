//! Labels: what an admin, or the agent, says of a worker, and what a job asks for.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::is_plain;

/// The most labels a worker or a job may carry.
pub const MAX_LABELS: usize = 32;
/// The longest label key or value, in characters.
pub const MAX_LABEL_CHARS: usize = 256;

/// Key and value pairs; for a job the values are globs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(pub BTreeMap<String, String>);

/// Why labels are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadLabels {
    /// More than [`MAX_LABELS`].
    TooMany(usize),
    /// An empty key, or a key or value that is too long or has control characters.
    BadEntry(String),
}

impl fmt::Display for BadLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(count) => write!(f, "{count} labels are too many; at most {MAX_LABELS} are kept"),
            Self::BadEntry(key) => write!(
                f,
                "label {key:?} is not usable: keys are not empty, keys and values have at most {MAX_LABEL_CHARS} characters and no control characters"
            ),
        }
    }
}

impl std::error::Error for BadLabels {}

impl Labels {
    /// Checks number and size.
    pub fn validate(&self) -> Result<(), BadLabels> {
        if self.0.len() > MAX_LABELS {
            return Err(BadLabels::TooMany(self.0.len()));
        }
        let usable = |text: &str| is_plain(text, MAX_LABEL_CHARS);
        match self.0.iter().find(|(key, value)| key.is_empty() || !usable(key) || !usable(value)) {
            Some((key, _)) => Err(BadLabels::BadEntry(key.chars().take(40).collect())),
            None => Ok(()),
        }
    }

    /// `self` with the entries of `other` that `self` does not have.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut merged = other.0.clone();
        merged.extend(self.0.clone());
        Self(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(BadLabels::TooMany(33).to_string().contains("33"));
        assert!(BadLabels::BadEntry("team".to_owned()).to_string().contains("team"));
    }

    #[test]
    fn the_admins_word_wins() {
        let merged = labels(&[("a", "admin")]).or(&labels(&[("a", "reported"), ("b", "reported")]));
        assert_eq!(merged, labels(&[("a", "admin"), ("b", "reported")]));
    }

    #[test]
    fn size_and_control_characters_are_checked() {
        assert_eq!(labels(&[("a", "b")]).validate(), Ok(()));
        let longest = "x".repeat(MAX_LABEL_CHARS);
        assert_eq!(labels(&[(&longest, &longest)]).validate(), Ok(()));
        for bad in [
            labels(&[("", "b")]),
            labels(&[("a", "b\n")]),
            labels(&[("a\u{7}", "b")]),
            labels(&[("a", &(longest + "x"))]),
        ] {
            assert!(matches!(bad.validate(), Err(BadLabels::BadEntry(_))));
        }
        let many = |count: usize| Labels((0..count).map(|i| (i.to_string(), String::new())).collect());
        assert_eq!(many(MAX_LABELS).validate(), Ok(()));
        assert_eq!(many(MAX_LABELS + 1).validate(), Err(BadLabels::TooMany(33)));
    }
}
