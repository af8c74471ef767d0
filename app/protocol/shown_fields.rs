//! Which fields of a value an output shows. Tests compare the others with a list beside the output, so that a new field is
//! shown or listed.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Returns the names of the fields on which the output of none of these values depends.
pub fn fields_not_shown<T>(values: &[T], output: impl Fn(&T) -> String) -> BTreeSet<String>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let (mut all, mut shown) = (BTreeSet::new(), BTreeSet::new());
    for value in values {
        let (fields, expected) = (fields_of(value), output(value));
        for name in fields.keys() {
            let is_shown = || changes(value, &fields, name).any(|changed| output(&changed) != expected);
            if !shown.contains(name) && is_shown() {
                shown.insert(name.clone());
            }
            all.insert(name.clone());
        }
    }
    all.difference(&shown).cloned().collect()
}

/// Returns the values that differ from this one in one field: without it, or with another value.
fn changes<T>(value: &T, fields: &Map<String, Value>, name: &str) -> impl Iterator<Item = T>
where
    T: DeserializeOwned + PartialEq,
{
    let with_value = move |other: Option<Value>| {
        let mut document = fields.clone();
        document.remove(name);
        document.extend(other.map(|other| (name.to_owned(), other)));
        serde_json::from_value::<T>(Value::Object(document)).ok().filter(|changed| changed != value)
    };
    std::iter::once(None).chain(other_values().map(Some)).filter_map(with_value)
}

/// Values of all types of fields. A new type of a required field may need one here.
fn other_values() -> impl Iterator<Item = Value> {
    let words = ["other", "auto", "completed", "2001-01-01T00:00:00Z"].map(Value::from);
    words.into_iter().chain([json!(3), json!(4), json!(true), json!(false), json!({}), json!([])])
}

fn fields_of<T: Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(PartialEq, Serialize, Deserialize)]
    struct Example {
        name: String,
        count: u8,
        limit: Option<f64>,
        #[serde(default)]
        flag: bool,
    }

    #[test]
    fn field_is_shown_if_the_output_of_a_value_depends_on_it() {
        let example = |flag| Example { name: "a".to_owned(), count: 1, limit: Some(0.5), flag };
        let hidden = |values: &[Example], output: fn(&Example) -> String| {
            fields_not_shown(values, output).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(hidden(&[example(true)], |shown| format!("{}{:?}", shown.count, shown.limit)), ["flag", "name"]);
        // The name is shown of one of them only.
        let name = |shown: &Example| if shown.flag { shown.name.clone() } else { String::new() };
        assert_eq!(hidden(&[example(false), example(true)], name), ["count", "limit"]);
    }
}
