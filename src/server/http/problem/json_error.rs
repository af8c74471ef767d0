//! Describes why a JSON body is invalid.

use serde_json::Error;

/// Returns the reason as a sentence. `path` is the position in the body, as in `worker_labels.team`, or `.` for the body
/// itself.
pub fn describe(path: &str, error: &Error) -> String {
    let text = error.to_string();
    let why = text.rsplit_once(" at line ").filter(|_| error.is_data()).map_or(text.as_str(), |(why, _)| why);
    let path = if error.is_data() { path } else { "." };
    match (path, unknown_variant(why)) {
        (".", _) => format!("The body is not the expected JSON: {why}."),
        (path, Some((found, allowed))) => format!("`{path}` cannot be {found}. Allowed: {allowed}."),
        (path, None) => format!("The body is not the expected JSON: `{path}`: {why}."),
    }
}

/// Returns the unknown value and the allowed ones of a serde message.
fn unknown_variant(why: &str) -> Option<(&str, &str)> {
    let (found, allowed) = why.strip_prefix("unknown variant ")?.rsplit_once(", expected ")?;
    Some((found, allowed))
}

#[cfg(test)]
mod tests {
    use crate::http::edge::json::parse_json;
    use app::protocol::jobs::SubmitJob;

    #[test]
    fn errors_contain_the_path() {
        let table = [
            (
                r#"{"config_name": "a", "target": "moon"}"#,
                "`target` cannot be `moon`. Allowed: one of `auto`, `worker`, `local`.",
            ),
            (
                r#"{"config_name": "a", "gpu_count": "two"}"#,
                "The body is not the expected JSON: `gpu_count`: invalid type: string \"two\", expected u32.",
            ),
            (
                r#"{"config_name": "a", "worker_labels": {"team": 3}}"#,
                "The body is not the expected JSON: `worker_labels.team`: invalid type: integer `3`, expected a string.",
            ),
            (r#"{"target": "auto"}"#, "The body is not the expected JSON: missing field `config_name`."),
            (
                r#"{"config_name": "#,
                "The body is not the expected JSON: EOF while parsing a value at line 1 column 16.",
            ),
            (
                r#"{"config_name": "a"} x"#,
                "The body is not the expected JSON: trailing characters at line 1 column 22.",
            ),
            ("[]", "The body is not the expected JSON: a list where an object is expected."),
        ];
        for (body, words) in table {
            let Err(error) = parse_json::<SubmitJob>(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(error.to_problem().detail, words, "{body}");
        }
    }
}
