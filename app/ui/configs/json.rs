//! JSON as pieces to be coloured. Whatever the text is, its pieces put together are the text.

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A name before a colon.
    Key,
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true`, `false`, `null`.
    Word,
    /// A bracket, a comma, a colon.
    Mark,
    /// Blanks and line ends.
    Blank,
    /// What is no JSON.
    Other,
}

/// Names that end so have values that are nobody's business.
const SECRETS: [&str; 6] = ["token", "secret", "password", "passphrase", "api_key", "access_key"];

/// The pieces of a text.
pub(crate) fn pieces(text: &str) -> Vec<(Ink, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = |same: fn(char) -> bool| rest.find(|letter| !same(letter)).unwrap_or(rest.len());
        let (ink, length) = match first {
            '"' => text_piece(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => (Ink::Mark, 1),
            letter if letter.is_ascii_whitespace() => (Ink::Blank, of(|letter| letter.is_ascii_whitespace())),
            '-' | '0'..='9' => (Ink::Number, of(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))),
            letter if letter.is_alphanumeric() => {
                let length = of(char::is_alphanumeric);
                let known = ["true", "false", "null"].contains(&&rest[..length]);
                (if known { Ink::Word } else { Ink::Other }, length)
            }
            letter => (Ink::Other, letter.len_utf8()),
        };
        let (piece, after) = rest.split_at(length);
        pieces.push((ink, piece));
        rest = after;
    }
    pieces
}

/// A text to its closing quote, or to the end of its line if it has none.
fn text_piece(rest: &str) -> (Ink, usize) {
    let mut escaped = false;
    let mut end = rest.len();
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '\n' => {
                end = at;
                break;
            }
            '"' if !escaped => {
                end = at + 1;
                break;
            }
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    let is_key = rest[end..].trim_start().starts_with(':');
    (if is_key { Ink::Key } else { Ink::Text }, end)
}

/// The same with a line for each value.
pub(crate) fn laid_out(text: &str) -> String {
    let mut laid = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let pieces: Vec<_> = pieces(text).into_iter().filter(|(ink, _)| *ink != Ink::Blank).collect();
    for (at, (_, piece)) in pieces.iter().enumerate() {
        let next = pieces.get(at + 1).map_or("", |(_, next)| *next);
        laid.push_str(piece);
        let (opens, closes) = (matches!(*piece, "{" | "["), matches!(next, "}" | "]"));
        if *piece == ":" {
            laid.push(' ');
        }
        if matches!(next, "," | ":" | "") || opens && closes {
            continue;
        }
        depth = if opens { depth + 1 } else { depth.saturating_sub(usize::from(closes)) };
        if opens || closes || *piece == "," {
            laid.push('\n');
            laid.extend(std::iter::repeat_n("  ", depth.min(32)));
        }
    }
    laid
}

/// The same without the values of secrets.
pub(crate) fn hidden(text: &str) -> String {
    let mut secret = false;
    let mut shown = String::with_capacity(text.len());
    for (ink, piece) in pieces(text) {
        match ink {
            Ink::Key => secret = is_secret(piece.trim_matches('"')),
            Ink::Mark if piece != ":" => secret = false,
            _ => {}
        }
        shown.push_str(if secret && ink == Ink::Text && piece.len() > 2 { HIDDEN } else { piece });
    }
    shown
}

/// What stands for a value that is not shown.
const HIDDEN: &str = "\"••••••••\"";

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_piece_is() {
        let text = r#"{"a": "x\"", "b": [-1e-4, true, nope]}"#;
        let inks: Vec<_> = pieces(text).into_iter().filter(|(ink, _)| !matches!(ink, Ink::Mark | Ink::Blank)).collect();
        assert_eq!(
            inks,
            [
                (Ink::Key, "\"a\""),
                (Ink::Text, r#""x\"""#),
                (Ink::Key, "\"b\""),
                (Ink::Number, "-1e-4"),
                (Ink::Word, "true"),
                (Ink::Other, "nope"),
            ]
        );
    }

    #[test]
    fn one_line_is_laid_out_and_numbers_stay_as_they_are_written() {
        let laid = laid_out(r#"{"a":1e-4,"b":[1,{}],"c":{"d":""}}"#);
        assert_eq!(laid, "{\n  \"a\": 1e-4,\n  \"b\": [\n    1,\n    {}\n  ],\n  \"c\": {\n    \"d\": \"\"\n  }\n}");
    }

    #[test]
    fn secrets_are_hidden_and_what_only_looks_alike_is_not() {
        let text = r#"{"--hub_token": "hf_abc", "tokenizer": "x", "aws": {"Secret": "s"}, "seed": 1}"#;
        assert_eq!(
            hidden(text),
            r#"{"--hub_token": "••••••••", "tokenizer": "x", "aws": {"Secret": "••••••••"}, "seed": 1}"#
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[\\x00-\\x7fé\"\\\\{}\\[\\]:, ]{0,60}") {
            let whole: String = pieces(&text).into_iter().map(|(_, piece)| piece).collect();
            prop_assert_eq!(whole, text);
        }

        #[test]
        fn what_is_laid_out_says_the_same(keys in proptest::collection::btree_map("[a-z\"\\\\]{1,3}", "[ -~]{0,4}", 0..4)) {
            let text = serde_json::json!({"a": keys, "b": [1.5, null, []]}).to_string();
            let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            prop_assert_eq!(same(&laid_out(&text)), same(&text));
        }
    }
}
