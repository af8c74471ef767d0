//! Labels of workers, set by an admin or reported by the agent, and the labels that jobs require.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::is_plain;

/// Maximum number of labels of a worker or a job.
pub const MAX_LABELS: usize = 32;
/// Maximum length of a label key or value, in characters.
pub const MAX_LABEL_CHARS: usize = 256;
/// Maximum number of characters of a label that an error repeats.
const MAX_ECHOED_CHARS: usize = 40;

/// Key-value pairs; for a job, the values are globs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(pub BTreeMap<String, String>);

/// Why labels are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelsError {
    /// More than [`MAX_LABELS`].
    TooMany(usize),
    /// A key that is empty, or a key or value that is too long or contains control characters.
    InvalidEntry(String),
    /// A key without a value.
    MissingValue(String),
}

impl fmt::Display for LabelsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(count) => write!(f, "{count} labels are too many; the maximum is {MAX_LABELS}"),
            Self::InvalidEntry(key) => write!(
                f,
                "invalid label {key:?}: keys must not be empty, and keys and values have at most {MAX_LABEL_CHARS} characters and no control characters"
            ),
            Self::MissingValue(text) => write!(f, "{text:?} has no value: use key=value"),
        }
    }
}

impl std::error::Error for LabelsError {}

impl Labels {
    /// Validates number and length.
    pub fn validate(&self) -> Result<(), LabelsError> {
        if self.0.len() > MAX_LABELS {
            return Err(LabelsError::TooMany(self.0.len()));
        }
        let is_valid = |text: &str| is_plain(text, MAX_LABEL_CHARS);
        match self.0.iter().find(|(key, value)| key.is_empty() || !is_valid(key) || !is_valid(value)) {
            Some((key, _)) => Err(LabelsError::InvalidEntry(key.chars().take(MAX_ECHOED_CHARS).collect())),
            None => Ok(()),
        }
    }

    /// Parses labels in the form `key=value`. Returns the valid ones, and the first error.
    pub fn parse_entries<'t>(entries: impl Iterator<Item = &'t str>) -> (Self, Result<(), LabelsError>) {
        let (mut labels, mut result) = (Self::default(), Ok(()));
        for entry in entries.map(str::trim).filter(|entry| !entry.is_empty()) {
            match entry.split_once('=') {
                Some((key, value)) => _ = labels.0.insert(key.trim().to_owned(), value.trim().to_owned()),
                None => {
                    result = result.and(Err(LabelsError::MissingValue(entry.chars().take(MAX_ECHOED_CHARS).collect())));
                }
            }
        }
        let result = result.and_then(|()| labels.validate());
        (labels, result)
    }

    /// Returns `self` plus the entries of `other` whose keys are not in `self`.
    #[must_use]
    pub fn with_fallback(&self, other: &Self) -> Self {
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
    fn label_errors_name_the_entry() {
        assert!(LabelsError::TooMany(33).to_string().contains("33"));
        assert!(LabelsError::InvalidEntry("team".to_owned()).to_string().contains("team"));
    }

    #[test]
    fn labels_are_parsed_from_key_value_text() {
        let (parsed, result) = Labels::parse_entries(["team=nlp", " gpu_type = a100* ", "", "zone="].into_iter());
        assert_eq!((parsed, result), (labels(&[("gpu_type", "a100*"), ("team", "nlp"), ("zone", "")]), Ok(())));
        let (parsed, result) = Labels::parse_entries(["a=b", "nonsense", "too", "=c"].into_iter());
        assert_eq!(parsed.0.get("a").map(String::as_str), Some("b"), "valid entries are kept");
        let error = result.expect_err("two have no value");
        assert_eq!(error, LabelsError::MissingValue("nonsense".to_owned()));
        assert!(error.to_string().contains("\"nonsense\" has no value"));
        assert!(matches!(Labels::parse_entries(["=c"].into_iter()).1, Err(LabelsError::InvalidEntry(_))));
    }

    #[test]
    fn admin_labels_take_precedence() {
        let merged = labels(&[("a", "admin")]).with_fallback(&labels(&[("a", "reported"), ("b", "reported")]));
        assert_eq!(merged, labels(&[("a", "admin"), ("b", "reported")]));
    }

    #[test]
    fn label_size_and_characters_are_validated() {
        assert_eq!(labels(&[("a", "b")]).validate(), Ok(()));
        let longest = "x".repeat(MAX_LABEL_CHARS);
        assert_eq!(labels(&[(&longest, &longest)]).validate(), Ok(()));
        for bad in [
            labels(&[("", "b")]),
            labels(&[("a", "b\n")]),
            labels(&[("a\u{7}", "b")]),
            labels(&[("a", &(longest + "x"))]),
        ] {
            assert!(matches!(bad.validate(), Err(LabelsError::InvalidEntry(_))));
        }
        let numbered_labels = |count: usize| Labels((0..count).map(|i| (i.to_string(), String::new())).collect());
        assert_eq!(numbered_labels(MAX_LABELS).validate(), Ok(()));
        assert_eq!(numbered_labels(MAX_LABELS + 1).validate(), Err(LabelsError::TooMany(33)));
    }
}
