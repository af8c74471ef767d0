//! Makes states of two runs comparable: IDs are numbered by their age, and times are left out.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::observation::Observation;

/// The length of an ID after its prefix, such as `j_`.
const ID_LENGTH: usize = 26;

pub fn canonical(observed: &Observation) -> Observation {
    let mut ids = BTreeSet::new();
    for (key, value) in &observed.records {
        ids.extend(ids_in(key));
        ids.extend(ids_in(&value.to_string()));
    }
    let ids: Vec<String> = ids.into_iter().collect();
    let records = observed.records.iter().map(|(key, value)| (number_ids(key, &ids), canonical_value(value, &ids)));
    let logs = observed.logs.iter().map(|(job, log)| (number_ids(job, &ids), log.clone()));
    Observation { records: records.collect(), logs: logs.collect() }
}

fn canonical_value(value: &Value, ids: &[String]) -> Value {
    match value {
        Value::String(text) if is_time(text) => "a time".into(),
        Value::String(text) => number_ids(text, ids).into(),
        Value::Array(items) => items.iter().map(|item| canonical_value(item, ids)).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| (number_ids(name, ids), canonical_value(value, ids));
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn is_time(text: &str) -> bool {
    text.len() == "2026-01-01T00:00:00.000Z".len() && text.starts_with("20") && text.ends_with('Z')
}

fn ids_in(text: &str) -> Vec<String> {
    let is_id = |word: &&str| {
        let mut parts = word.splitn(2, '_');
        let (prefix, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        prefix.len() == 1 && rest.len() == ID_LENGTH
    };
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(is_id).map(str::to_owned).collect()
}

fn number_ids(text: &str, ids: &[String]) -> String {
    ids_in(text).into_iter().fold(text.to_owned(), |text, id| {
        let kind = &id[..2];
        let number = ids.iter().filter(|other| other.starts_with(kind)).position(|other| *other == id);
        text.replace(&id, &format!("{kind}{}", number.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_numbered_and_times_left_out() {
        let state = |first: &str, second: &str, time: &str| {
            let (first, second) = (format!("j_{}{first}", "0".repeat(25)), format!("j_{}{second}", "0".repeat(25)));
            let value = json!({"job_id": second, "retry_of": first, "at": time, "status": "queued"});
            let records = [(format!("job {second}"), value)].into();
            canonical(&Observation { records, logs: [(first, Vec::new())].into() })
        };
        let one = state("1", "2", "2026-01-01T00:00:00.000Z");
        assert_eq!(one, state("4", "7", "2026-02-03T04:05:06.789Z"));
        assert_eq!(one.records["job j_1"]["retry_of"], "j_0");
        assert_ne!(one, state("7", "4", "2026-01-01T00:00:00.000Z"));
    }
}
