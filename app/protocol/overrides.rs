//! Values of a configuration that one job changes for itself, kept as a diff of what it ran.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most values that a job changes.
pub const MAX: usize = 64;
/// The longest key and value, in bytes.
const LONGEST: usize = 4_096;
/// The largest diff that is kept, in bytes: the configuration's values are in it, too.
const MAX_DIFF: usize = 16_384;

/// What a submit asks for: keys of `config.json` with their new values. `null` leaves a key out.
pub type Values = BTreeMap<String, Value>;

/// A value before and after; none where the key is not there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// In the configuration.
    pub from: Option<Value>,
    /// In this job.
    pub to: Option<Value>,
}

/// What a job changed, by key.
pub type Diff = BTreeMap<String, Change>;

/// Whether a diff is small enough to be kept with its job.
pub fn is_small(diff: &Diff) -> bool {
    let size = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
    diff.iter().map(|(key, Change { from, to })| key.len() + size(from) + size(to)).sum::<usize>() <= MAX_DIFF
}

/// Why values cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// Too many of them.
    TooMany,
    /// A key is not one that a configuration has.
    Key(String),
    /// The value of this key is too long.
    Long(String),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "at most {MAX} values can be overridden"),
            Self::Key(key) => write!(f, "{key:?} is not the name of a setting, such as learning_rate"),
            Self::Long(key) => write!(f, "the value of {key} is longer than {LONGEST} bytes"),
        }
    }
}

/// Checks what a stranger sent.
///
/// # Errors
/// The first that cannot be taken.
pub fn check(values: &Values) -> Result<(), Unusable> {
    if values.len() > MAX {
        return Err(Unusable::TooMany);
    }
    for (key, value) in values {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        if key.is_empty() || key.len() > 128 || key.starts_with('-') || !key.chars().all(plain) {
            return Err(Unusable::Key(key.chars().take(80).collect()));
        }
        if value.to_string().len() > LONGEST {
            return Err(Unusable::Long(key.clone()));
        }
    }
    Ok(())
}

/// What these values change of a configuration. What is so already is no change.
pub fn diff(config: &Map<String, Value>, values: &Values) -> Diff {
    let change = |(key, value): (&String, &Value)| {
        let from = config.get(&written(config, key)).cloned();
        let to = Some(value.clone()).filter(|value| !value.is_null());
        (from != to).then(|| (key.clone(), Change { from, to }))
    };
    values.iter().filter_map(change).collect()
}

/// The configuration as the job runs it.
pub fn applied(mut config: Map<String, Value>, diff: &Diff) -> Map<String, Value> {
    for (key, change) in diff {
        let key = written(&config, key);
        match &change.to {
            Some(value) => drop(config.insert(key, value.clone())),
            None => drop(config.remove(&key)),
        }
    }
    config
}

/// What has to be asked for to change the same again.
pub fn values(diff: &Diff) -> Values {
    diff.iter().map(|(key, change)| (key.clone(), change.to.clone().unwrap_or_default())).collect()
}

/// Values as people type them, `learning_rate=1e-5` a line: JSON where it is some, else text; nothing after the sign leaves
/// the key out.
///
/// # Errors
/// The first line without a sign.
pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Values, String> {
    let pair = |line: &'a str| {
        let (key, value) = line.split_once('=').ok_or_else(|| line.to_owned())?;
        let (key, value) = (key.trim().trim_start_matches("--"), value.trim());
        let text = || Value::String(value.to_owned());
        let value = if value.is_empty() { Value::Null } else { serde_json::from_str(value).unwrap_or_else(|_| text()) };
        Ok((key.to_owned(), value))
    };
    lines.into_iter().map(str::trim).filter(|line| !line.is_empty()).map(pair).collect()
}

/// The inverse of [`parse`], a line each.
pub fn lines(values: &Values) -> Vec<String> {
    let line = |(key, value): (&String, &Value)| match value {
        Value::Null => format!("{key}="),
        Value::String(text) if is_plain(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    };
    values.iter().map(line).collect()
}

/// Whether [`parse`] reads a text as it stands, without quotes.
fn is_plain(text: &str) -> bool {
    let is_json = || serde_json::from_str::<Value>(text).is_ok();
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control) && !is_json()
}

/// The name by which a configuration has this key: `key` or `--key`.
pub fn written(config: &Map<String, Value>, key: &str) -> String {
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
    fn values_are_changed_added_and_left_out_by_either_spelling() {
        let config = object(json!({"--learning_rate": 0.1, "seed": 7, "flag": true, "same": "x"}));
        let asked = parse(["learning_rate=1e-5", "seed=", "new = a b", "same=x", "  "]).expect("pairs");
        assert_eq!(
            asked,
            BTreeMap::from([
                ("learning_rate".to_owned(), json!(1e-5)),
                ("new".to_owned(), json!("a b")),
                ("same".to_owned(), json!("x")),
                ("seed".to_owned(), Value::Null),
            ])
        );
        let diff = diff(&config, &asked);
        assert_eq!(
            serde_json::to_value(&diff).expect("plain"),
            json!({"learning_rate": {"from": 0.1, "to": 1e-5}, "new": {"from": null, "to": "a b"}, "seed": {"from": 7, "to": null}})
        );
        assert_eq!(
            Value::Object(applied(config, &diff)),
            json!({"--learning_rate": 1e-5, "flag": true, "same": "x", "new": "a b"})
        );
        assert_eq!(parse(["oops"]), Err("oops".to_owned()));
    }

    #[test]
    fn what_no_configuration_has_is_refused() {
        let one = |key: &str, value: Value| check(&BTreeMap::from([(key.to_owned(), value)]));
        assert_eq!(one("learning_rate", json!(1)), Ok(()));
        for key in ["", "--x", "a b", "a=b", "ключ", "a/b", &"k".repeat(129)] {
            assert!(matches!(one(key, json!(1)), Err(Unusable::Key(_))), "{key}");
        }
        assert_eq!(one("x", json!("y".repeat(LONGEST))), Err(Unusable::Long("x".to_owned())));
        let many: Values = (0..=MAX).map(|number| (format!("k{number}"), Value::Null)).collect();
        assert_eq!(check(&many), Err(Unusable::TooMany));
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
        fn lines_are_read_as_they_were_written(values in proptest::collection::btree_map("[a-z_]{1,8}", value(), 0..5)) {
            let text = lines(&values).join("\n");
            prop_assert_eq!(parse(text.lines()), Ok(values));
        }

        #[test]
        fn a_diff_gives_what_was_asked_for_and_nothing_twice(
            config in proptest::collection::btree_map("[a-d]", value(), 0..4),
            asked in proptest::collection::btree_map("[a-d]", value(), 0..4),
        ) {
            let config: Map<String, Value> = config.into_iter().filter(|(_, value)| !value.is_null()).collect();
            let run = applied(config.clone(), &diff(&config, &asked));
            for (key, value) in &asked {
                prop_assert_eq!(run.get(key).cloned().unwrap_or_default(), value.clone());
            }
            prop_assert!(diff(&run, &asked).is_empty());
            let untouched = |key: &&String| !asked.contains_key(*key);
            prop_assert!(config.keys().filter(untouched).all(|key| run.get(key) == config.get(key)));
        }
    }
}
