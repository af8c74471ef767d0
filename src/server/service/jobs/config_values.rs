//! The values of a configuration by key. Keys of nested objects are joined with dots.

use serde_json::{Map, Value};

/// Returns the values that are not objects with values of their own.
pub fn flat_values(object: &Map<String, Value>) -> Vec<(String, &Value)> {
    fn collect<'v>(prefix: &str, object: &'v Map<String, Value>, values: &mut Vec<(String, &'v Value)>) {
        for (key, value) in object {
            let key = config_key(key);
            let key = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
            match value {
                Value::Object(nested) if !nested.is_empty() => collect(&key, nested, values),
                _ => values.push((key, value)),
            }
        }
    }
    let mut values = Vec::new();
    collect("", object, &mut values);
    values
}

/// Keys may be written as options of the trainer's command line.
pub fn config_key(key: &str) -> &str {
    key.strip_prefix("--").unwrap_or(key)
}

/// Returns a value as a number. Numbers are often written as texts, such as "1e-5".
pub fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|number| number.is_finite())
}
