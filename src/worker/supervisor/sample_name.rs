//! Names of samples inside events: the step and the prompt's name, as the pages parse them from the file names of other
//! samples. The text is untrusted and becomes part of a file name: only letters, digits, `-` and `_`, and a limited
//! length.

use serde_json::Value;

/// Max length of a prompt's name, in bytes.
const MAX_PROMPT_BYTES: usize = 80;
/// The fields of an event that name the prompt of its images.
const EVENT_TEXT_FIELDS: [&str; 2] = ["message", "body"];
/// The fields of an image that name its prompt.
const IMAGE_NAME_FIELDS: [&str; 3] = ["name", "prompt", "caption"];

/// What all images of an event have in common.
#[derive(Debug, Default)]
pub struct SampleName {
    pub step: Option<u64>,
    pub prompt: Option<String>,
}

impl SampleName {
    /// The suffix for one of `count` images. A prompt that the image itself names overrides the event's.
    pub fn suffix(&self, image: &Value, index: usize, count: usize) -> String {
        let numbered = |name: &String| if count > 1 { format!("{name}_{index}") } else { name.clone() };
        let prompt = prompt_from_image(image).or_else(|| self.prompt.as_ref().map(numbered));
        let step = self.step.map(|step| format!("_step_{step}"));
        step.into_iter().chain(prompt.map(|name| format!("_{name}"))).collect()
    }
}

/// The prompt's name from an event's text: the quoted part, otherwise the first line.
pub fn prompt_from_event(event: &Value) -> Option<String> {
    let texts = [event, &event["data"]].into_iter().flat_map(|from| EVENT_TEXT_FIELDS.map(|key| from[key].as_str()));
    texts
        .flatten()
        .find_map(|text| first_quoted(text).and_then(sanitize).or_else(|| sanitize(text.trim().lines().next()?)))
}

fn prompt_from_image(image: &Value) -> Option<String> {
    IMAGE_NAME_FIELDS.iter().find_map(|key| sanitize(image[*key].as_str()?))
}

fn first_quoted(text: &str) -> Option<&str> {
    ['`', '"'].into_iter().find_map(|mark| {
        let (_, rest) = text.split_once(mark)?;
        let (quoted, _) = rest.split_once(mark)?;
        Some(quoted).filter(|quoted| !quoted.trim().is_empty())
    })
}

fn sanitize(text: &str) -> Option<String> {
    let mut name = String::new();
    for c in text.chars() {
        let replacement = if c.is_alphanumeric() || c == '-' { c } else { '_' };
        if replacement == '_' && (name.is_empty() || name.ends_with('_')) {
            continue;
        }
        if name.len() + replacement.len_utf8() > MAX_PROMPT_BYTES {
            break;
        }
        name.push(replacement);
    }
    let name = name.trim_end_matches('_');
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prompt_is_the_quoted_part_or_the_first_line() {
        for (event, expected) in [
            (json!({"message": "Validation image of `a cat`\nPrompt: `a cat that sits`"}), Some("a_cat")),
            (json!({"body": "Sample \"a-cat\""}), Some("a-cat")),
            (json!({"data": {"body": "a cat\nand more"}}), Some("a_cat")),
            (json!({"message": "", "body": "a cat"}), Some("a_cat")),
            (json!({"message": "a `` b"}), Some("a_b")),
            (json!({"message": "an open ` quote"}), Some("an_open_quote")),
            (json!({"message": 7}), None),
            (json!({"message": "… /../"}), None),
            (json!(["message"]), None),
        ] {
            assert_eq!(prompt_from_event(&event).as_deref(), expected, "{event}");
        }
    }

    #[test]
    fn sample_names_are_bounded_and_never_paths() {
        assert_eq!(sanitize("../../etc/passwd\0\u{202e}.png").as_deref(), Some("etc_passwd_png"));
        assert_eq!(sanitize("Größe 猫").as_deref(), Some("Größe_猫"));
        assert_eq!(sanitize(&"猫".repeat(9_000)).map(|name| name.len()), Some(78));
        assert_eq!(sanitize(&" ".repeat(9_000)), None);
    }

    #[test]
    fn suffix_contains_known_parts() {
        let suffix = |step, prompt: Option<&str>, image: Value, count| {
            SampleName { step, prompt: prompt.map(str::to_owned) }.suffix(&image, 2, count)
        };
        assert_eq!(suffix(Some(400), Some("a_cat"), json!("…"), 1), "_step_400_a_cat");
        assert_eq!(suffix(Some(400), Some("a_cat"), json!("…"), 3), "_step_400_a_cat_2");
        assert_eq!(suffix(Some(400), Some("a_cat"), json!({"data": "…", "prompt": "a dog"}), 3), "_step_400_a_dog");
        assert_eq!(suffix(Some(400), None, json!("…"), 1), "_step_400");
        assert_eq!(suffix(None, Some("a_cat"), json!(7), 1), "_a_cat");
        assert_eq!(suffix(None, None, json!("…"), 3), "");
    }
}
