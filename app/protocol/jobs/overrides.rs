//! Overrides: values of a configuration that are changed for one job, stored as a diff.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of overrides of a job.
pub const MAX_OVERRIDES: usize = 64;
/// Maximum length of a key and its value, in bytes.
pub const MAX_ENTRY_BYTES: usize = 4_096;
/// Maximum size of a stored diff, in bytes; it includes the configuration's values.
pub const MAX_DIFF_BYTES: usize = 16_384;

/// Overrides of a submit: keys of `config.json` with their new values. `null` removes a key.
pub type OverrideValues = BTreeMap<String, Value>;

/// A value before and after; none if the key does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverrideChange {
    /// The value in the configuration.
    pub from: Option<Value>,
    /// The value in this job.
    pub to: Option<Value>,
}

/// The overrides of a job, by key.
pub type OverrideDiff = BTreeMap<String, OverrideChange>;

/// Returns whether a diff is small enough to be stored with its job.
pub fn fits_size_limit(diff: &OverrideDiff) -> bool {
    let size = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
    diff.iter().map(|(key, OverrideChange { from, to })| key.len() + size(from) + size(to)).sum::<usize>()
        <= MAX_DIFF_BYTES
}

/// Why overrides are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverrideError {
    /// Too many values.
    TooMany,
    /// An invalid key.
    InvalidKey(String),
    /// The value of this key is too long.
    ValueTooLong(String),
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "at most {MAX_OVERRIDES} values can be overridden"),
            Self::InvalidKey(key) => write!(f, "{key:?} is not the name of a setting, such as learning_rate"),
            Self::ValueTooLong(key) => write!(f, "the value of {key} is longer than {MAX_ENTRY_BYTES} bytes"),
        }
    }
}

/// Validates untrusted overrides.
///
/// # Errors
///
/// Returns the first error.
pub fn validate(values: &OverrideValues) -> Result<(), OverrideError> {
    if values.len() > MAX_OVERRIDES {
        return Err(OverrideError::TooMany);
    }
    for (key, value) in values {
        let is_key_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if key.is_empty() || key.len() > 128 || key.starts_with('-') || !key.chars().all(is_key_char) {
            return Err(OverrideError::InvalidKey(key.chars().take(80).collect()));
        }
        if value.to_string().len() > MAX_ENTRY_BYTES {
            return Err(OverrideError::ValueTooLong(key.clone()));
        }
    }
    Ok(())
}

/// Returns the changes to a configuration. Values that are equal already are omitted.
pub fn diff(config: &Map<String, Value>, values: &OverrideValues) -> OverrideDiff {
    let change = |(key, value): (&String, &Value)| {
        let from = config.get(&resolve_key(config, key)).cloned();
        let to = Some(value.clone()).filter(|value| !value.is_null());
        (from != to).then(|| (key.clone(), OverrideChange { from, to }))
    };
    values.iter().filter_map(change).collect()
}

/// Applies a diff to a configuration.
pub fn apply(mut config: Map<String, Value>, diff: &OverrideDiff) -> Map<String, Value> {
    for (key, change) in diff {
        let key = resolve_key(&config, key);
        match &change.to {
            Some(value) => drop(config.insert(key, value.clone())),
            None => drop(config.remove(&key)),
        }
    }
    config
}

/// Returns the override values that lead to the same diff.
pub fn to_values(diff: &OverrideDiff) -> OverrideValues {
    diff.iter().map(|(key, change)| (key.clone(), change.to.clone().unwrap_or_default())).collect()
}

/// Parses lines like `learning_rate=1e-5`: the value is JSON if it parses as JSON, else text; an empty value removes
/// the key.
///
/// # Errors
///
/// Returns the first line without `=`.
pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<OverrideValues, String> {
    let entry = |line: &'a str| {
        let (key, value) = line.split_once('=').ok_or_else(|| line.to_owned())?;
        let (key, value) = (key.trim().trim_start_matches("--"), value.trim());
        let text = || Value::String(value.to_owned());
        let value = if value.is_empty() { Value::Null } else { serde_json::from_str(value).unwrap_or_else(|_| text()) };
        Ok((key.to_owned(), value))
    };
    lines.into_iter().map(str::trim).filter(|line| !line.is_empty()).map(entry).collect()
}

/// The inverse of [`parse`]: one line for each value.
pub fn to_lines(values: &OverrideValues) -> Vec<String> {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Null => format!("{key}="),
        Value::String(text) if needs_no_quotes(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    };
    values.iter().map(line).collect()
}

/// Returns whether [`parse`] reads a text unchanged without quotes.
fn needs_no_quotes(text: &str) -> bool {
    let is_json = || serde_json::from_str::<Value>(text).is_ok();
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control) && !is_json()
}

/// Returns the spelling of a key in this configuration: `key` or `--key`.
pub fn resolve_key(config: &Map<String, Value>, key: &str) -> String {
    let dashed = format!("--{key}");
    if !config.contains_key(key) && config.contains_key(&dashed) { dashed } else { key.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(object) = value else { panic!("{value} is no object") };
        object
    }

    #[test]
    fn values_are_changed_added_and_removed_in_either_spelling() {
        let config = object(json!({"--learning_rate": 0.1, "seed": 7, "flag": true, "same": "x"}));
        let overrides = parse(["learning_rate=1e-5", "seed=", "new = a b", "same=x", "  "]).expect("pairs");
        assert_eq!(
            overrides,
            BTreeMap::from([
                ("learning_rate".to_owned(), json!(1e-5)),
                ("new".to_owned(), json!("a b")),
                ("same".to_owned(), json!("x")),
                ("seed".to_owned(), Value::Null),
            ])
        );
        let diff = diff(&config, &overrides);
        assert_eq!(
            serde_json::to_value(&diff).expect("JSON"),
            json!({"learning_rate": {"from": 0.1, "to": 1e-5}, "new": {"from": null, "to": "a b"}, "seed": {"from": 7, "to": null}})
        );
        assert_eq!(
            Value::Object(apply(config, &diff)),
            json!({"--learning_rate": 1e-5, "flag": true, "same": "x", "new": "a b"})
        );
        assert_eq!(parse(["oops"]), Err("oops".to_owned()));
    }

    #[test]
    fn invalid_keys_are_rejected() {
        let validate_one = |key: &str, value: Value| validate(&BTreeMap::from([(key.to_owned(), value)]));
        assert_eq!(validate_one("learning_rate", json!(1)), Ok(()));
        for key in ["", "--x", "a b", "a=b", "ключ", "a/b", &"k".repeat(129)] {
            assert!(matches!(validate_one(key, json!(1)), Err(OverrideError::InvalidKey(_))), "{key}");
        }
        assert_eq!(
            validate_one("x", json!("y".repeat(MAX_ENTRY_BYTES))),
            Err(OverrideError::ValueTooLong("x".to_owned()))
        );
        let many: OverrideValues = (0..=MAX_OVERRIDES).map(|number| (format!("k{number}"), Value::Null)).collect();
        assert_eq!(validate(&many), Err(OverrideError::TooMany));
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\n\t]{0,12}".prop_map(Value::from),
            proptest::collection::vec(any::<i32>(), 0..3).prop_map(Value::from),
        ]
    }

    proptest! {
        #[test]
        fn lines_round_trip(values in proptest::collection::btree_map("[a-z_]{1,8}", value(), 0..5)) {
            let text = to_lines(&values).join("\n");
            prop_assert_eq!(parse(text.lines()), Ok(values));
        }

        #[test]
        fn diff_round_trips_and_omits_equal_values(
            config in proptest::collection::btree_map("[a-d]", value(), 0..4),
            overrides in proptest::collection::btree_map("[a-d]", value(), 0..4),
        ) {
            let config: Map<String, Value> = config.into_iter().filter(|(_, value)| !value.is_null()).collect();
            let applied = apply(config.clone(), &diff(&config, &overrides));
            for (key, value) in &overrides {
                prop_assert_eq!(applied.get(key).cloned().unwrap_or_default(), value.clone());
            }
            prop_assert!(diff(&applied, &overrides).is_empty());
            let is_not_overridden = |key: &&String| !overrides.contains_key(*key);
            prop_assert!(config.keys().filter(is_not_overridden).all(|key| applied.get(key) == config.get(key)));
        }
    }
}
