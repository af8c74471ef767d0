//! Splits JSON into tokens for highlighting. The tokens of any text, joined, are that text.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonToken {
    /// A name before a colon.
    Key,
    /// A string.
    Text,
    Number,
    /// `true`, `false`, `null`.
    Literal,
    /// A bracket, a comma, or a colon.
    Punctuation,
    Whitespace,
    /// Not valid JSON.
    Invalid,
}

/// The values of names that end with these are secret.
const SECRET_SUFFIXES: [&str; 6] = ["token", "secret", "password", "passphrase", "api_key", "access_key"];

/// Splits a text into tokens.
pub(crate) fn tokenize(text: &str) -> Vec<(JsonToken, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run_length = |same: fn(char) -> bool| rest.find(|letter| !same(letter)).unwrap_or(rest.len());
        let (token, length) = match first {
            '"' => string_token(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => (JsonToken::Punctuation, 1),
            letter if letter.is_ascii_whitespace() => {
                (JsonToken::Whitespace, run_length(|letter| letter.is_ascii_whitespace()))
            }
            '-' | '0'..='9' => {
                (JsonToken::Number, run_length(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter)))
            }
            letter if letter.is_alphanumeric() => {
                let length = run_length(char::is_alphanumeric);
                let known = ["true", "false", "null"].contains(&&rest[..length]);
                (if known { JsonToken::Literal } else { JsonToken::Invalid }, length)
            }
            letter => (JsonToken::Invalid, letter.len_utf8()),
        };
        let (text, after) = rest.split_at(length);
        tokens.push((token, text));
        rest = after;
    }
    tokens
}

/// The kind and length of a string, up to its closing quote or, if it has none, to the end of its line.
fn string_token(rest: &str) -> (JsonToken, usize) {
    let mut escaped = false;
    let mut end = rest.len();
    for (index, letter) in rest.char_indices().skip(1) {
        match letter {
            '\n' => {
                end = index;
                break;
            }
            '"' if !escaped => {
                end = index + 1;
                break;
            }
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    let is_key = rest[end..].trim_start().starts_with(':');
    (if is_key { JsonToken::Key } else { JsonToken::Text }, end)
}

/// Formats JSON with one value per line; the values stay as they are written.
pub(crate) fn pretty_print(text: &str) -> String {
    let mut formatted = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let tokens: Vec<_> = tokenize(text).into_iter().filter(|(token, _)| *token != JsonToken::Whitespace).collect();
    for (index, (_, text)) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).map_or("", |(_, next)| *next);
        formatted.push_str(text);
        let (opens, closes) = (matches!(*text, "{" | "["), matches!(next, "}" | "]"));
        if *text == ":" {
            formatted.push(' ');
        }
        if matches!(next, "," | ":" | "") || opens && closes {
            continue;
        }
        depth = if opens { depth + 1 } else { depth.saturating_sub(usize::from(closes)) };
        if opens || closes || *text == "," {
            formatted.push('\n');
            formatted.extend(std::iter::repeat_n("  ", depth.min(32)));
        }
    }
    formatted
}

/// Masks the values of secrets.
pub(crate) fn redact(text: &str) -> String {
    let mut secret = false;
    let mut redacted = String::with_capacity(text.len());
    for (token, text) in tokenize(text) {
        match token {
            JsonToken::Key => secret = is_secret(text.trim_matches('"')),
            JsonToken::Punctuation if text != ":" => secret = false,
            _ => {}
        }
        redacted.push_str(if secret && token == JsonToken::Text && text.len() > 2 { REDACTED } else { text });
    }
    redacted
}

/// Shown instead of a secret.
const REDACTED: &str = "\"••••••••\"";

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_SUFFIXES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_tokens_have_their_kind() {
        let text = r#"{"a": "x\"", "b": [-1e-4, true, nope]}"#;
        let tokens: Vec<_> = tokenize(text)
            .into_iter()
            .filter(|(token, _)| !matches!(token, JsonToken::Punctuation | JsonToken::Whitespace))
            .collect();
        assert_eq!(
            tokens,
            [
                (JsonToken::Key, "\"a\""),
                (JsonToken::Text, r#""x\"""#),
                (JsonToken::Key, "\"b\""),
                (JsonToken::Number, "-1e-4"),
                (JsonToken::Literal, "true"),
                (JsonToken::Invalid, "nope"),
            ]
        );
    }

    #[test]
    fn pretty_print_keeps_numbers_as_written() {
        let formatted = pretty_print(r#"{"a":1e-4,"b":[1,{}],"c":{"d":""}}"#);
        assert_eq!(
            formatted,
            "{\n  \"a\": 1e-4,\n  \"b\": [\n    1,\n    {}\n  ],\n  \"c\": {\n    \"d\": \"\"\n  }\n}"
        );
    }

    #[test]
    fn only_secrets_are_redacted() {
        let text = r#"{"--hub_token": "hf_abc", "tokenizer": "x", "aws": {"Secret": "s"}, "seed": 1}"#;
        assert_eq!(
            redact(text),
            r#"{"--hub_token": "••••••••", "tokenizer": "x", "aws": {"Secret": "••••••••"}, "seed": 1}"#
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[\\x00-\\x7fé\"\\\\{}\\[\\]:, ]{0,60}") {
            let joined: String = tokenize(&text).into_iter().map(|(_, text)| text).collect();
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn pretty_print_keeps_the_value(keys in proptest::collection::btree_map("[a-z\"\\\\]{1,3}", "[ -~]{0,4}", 0..4)) {
            let text = serde_json::json!({"a": keys, "b": [1.5, null, []]}).to_string();
            let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            prop_assert_eq!(same(&pretty_print(&text)), same(&text));
        }
    }
}
