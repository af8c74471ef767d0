//! The values that differ between two JSON files.

use std::collections::BTreeSet;

use serde_json::Value;

/// One value that was added, removed, or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueChange {
    /// The position, as `a.b[0]`.
    pub path: String,
    /// The old value; none if it was added.
    pub before: Option<String>,
    /// The new value; none if it was removed.
    pub after: Option<String>,
}

/// The changes from one text to the other; empty if one of them is not JSON.
pub(crate) fn value_changes(before: &str, after: &str) -> Vec<ValueChange> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    let mut found = Vec::new();
    if let (Some(before), Some(after)) = (parse(before), parse(after)) {
        compare("", Some(&before), Some(&after), &mut found);
    }
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<ValueChange>) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, old.get(key), new.get(key), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(&format!("{path}[{index}]"), old.get(index), new.get(index), found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            let display = |value: &Value| match value {
                Value::String(text) if !text.is_empty() => text.clone(),
                other => other.to_string(),
            };
            found.push(ValueChange { path: path.to_owned(), before: before.map(display), after: after.map(display) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_value_is_listed_once() {
        let before = r#"{"learning_rate": 0.005, "same": [1, 2], "gone": true, "deep": {"list": [1, 2, 3]}}"#;
        let after = r#"{"learning_rate": 0.01, "same": [1, 2], "new": "x", "deep": {"list": [1, 5]}}"#;
        let changes: Vec<_> = value_changes(before, after)
            .into_iter()
            .map(|ValueChange { path, before, after }| {
                format!("{path}: {} > {}", before.unwrap_or_default(), after.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            changes,
            ["deep.list[1]: 2 > 5", "deep.list[2]: 3 > ", "gone: true > ", "learning_rate: 0.005 > 0.01", "new:  > x"]
        );
    }

    #[test]
    fn invalid_json_has_no_value_changes() {
        assert_eq!((value_changes("{", "{}"), value_changes("{}", "{}")), (Vec::new(), Vec::new()));
    }
}
