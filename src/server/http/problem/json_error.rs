//! Describes why a JSON body is invalid.

use serde_json::Error;

use super::Sentence;

/// Returns the reason. `path` is the position in the body, as in `worker_labels.team`, or `.` for the body itself.
pub fn sentence(path: &str, error: &Error) -> Sentence {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").filter(|_| error.is_data()).map_or(text.as_str(), |(reason, _)| reason);
    let path = if error.is_data() { path } else { "." };
    match (path.to_owned(), unknown_variant(reason)) {
        (path, _) if path == "." => Sentence::InvalidJsonBody { why: reason.to_owned() },
        (path, Some((value, allowed))) => {
            // Serde lists the words in English: "`a` or `b`", "one of `a`, `b`, `c`".
            let allowed = allowed.trim_start_matches("one of ").replace("` or `", "`, `");
            Sentence::InvalidJsonWord { path, found: value.to_owned(), allowed }
        }
        (path, None) => Sentence::InvalidJsonField { path, why: reason.to_owned() },
    }
}

/// Returns the unknown value and the allowed ones of a serde message.
fn unknown_variant(reason: &str) -> Option<(&str, &str)> {
    let (found, allowed) = reason.strip_prefix("unknown variant ")?.rsplit_once(", expected ")?;
    Some((found, allowed))
}

#[cfg(test)]
mod tests {
    use crate::http::edge::json::parse_json;
    use app::protocol::jobs::SubmitJob;
    use app::ui::prefs::Locale;

    #[test]
    fn errors_contain_the_path() {
        let table = [
            (
                r#"{"config_name": "a", "target": "moon"}"#,
                "`target` cannot be `moon`. Allowed: `auto`, `worker`, `local`.",
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
        for (body, expected) in table {
            let Err(error) = parse_json::<SubmitJob>(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(error.to_problem(Locale::En).detail, expected, "{body}");
        }
    }
}
