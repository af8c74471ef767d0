//! Why a body is not what a route takes.

use serde_json::Error;

/// As a sentence; `path` says where in the body, as in `worker_labels.team`, and is `.` for all of it.
pub fn in_words(path: &str, error: &Error) -> String {
    let text = error.to_string();
    let why = text.rsplit_once(" at line ").filter(|_| error.is_data()).map_or(text.as_str(), |(why, _)| why);
    let path = if error.is_data() { path } else { "." };
    match (path, variant(why)) {
        (".", _) => format!("The body is not the JSON that this route takes: {why}."),
        (path, Some((found, allowed))) => format!("`{path}` cannot be {found}. It takes {allowed}."),
        (path, None) => format!("The body is not the JSON that this route takes: `{path}`: {why}."),
    }
}

/// What was found and what is allowed, of a word that is none of a list.
fn variant(why: &str) -> Option<(&str, &str)> {
    let (found, allowed) = why.strip_prefix("unknown variant ")?.rsplit_once(", expected ")?;
    Some((found, allowed))
}

#[cfg(test)]
mod tests {
    use crate::http::json::parse;
    use app::protocol::submit::SubmitJob;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let table = [
            (
                r#"{"config_name": "a", "target": "moon"}"#,
                "`target` cannot be `moon`. It takes one of `auto`, `worker`, `local`.",
            ),
            (
                r#"{"config_name": "a", "gpu_count": "two"}"#,
                "The body is not the JSON that this route takes: `gpu_count`: invalid type: string \"two\", expected u32.",
            ),
            (
                r#"{"config_name": "a", "worker_labels": {"team": 3}}"#,
                "The body is not the JSON that this route takes: `worker_labels.team`: invalid type: integer `3`, expected a string.",
            ),
            (r#"{"target": "auto"}"#, "The body is not the JSON that this route takes: missing field `config_name`."),
            (
                r#"{"config_name": "#,
                "The body is not the JSON that this route takes: EOF while parsing a value at line 1 column 16.",
            ),
            (
                r#"{"config_name": "a"} x"#,
                "The body is not the JSON that this route takes: trailing characters at line 1 column 22.",
            ),
            ("[]", "The body is not the JSON that this route takes: a list where an object is expected."),
        ];
        for (body, words) in table {
            let Err(error) = parse::<SubmitJob>(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(error.problem().detail, words, "{body}");
        }
    }
}
