//! The text of a file: numbered lines, with syntax highlighting for JSON.

use leptos::prelude::*;

use crate::domain::text::escape_lines;
use crate::ui::configs::json::{JsonToken, tokenize};
use crate::ui::configs::{format_for_display, is_json};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Maximum number of lines that are shown.
const MAX_LINES: usize = 2_000;
/// Maximum number of bytes that are shown.
const MAX_BYTES: usize = 256 << 10;
/// Maximum number of tokens that are highlighted: each is an element. A file with more is shown as plain text.
const MAX_TOKENS: usize = 20_000;

/// A file, with notes if values are masked or lines are omitted.
#[component]
pub(crate) fn FileText(name: String, text: String) -> impl IntoView {
    let formatted = format_for_display(&name, &text);
    let display_text = escape_lines(&formatted);
    let visible_text = visible_beginning(&display_text);
    let has_masked_values = is_json(&name) && visible_text.contains("••••••••");
    let omission = (visible_text.len() < display_text.len()).then(|| omission_note(visible_text));
    let lines = highlighted_lines(&name, visible_text).into_iter().map(|tokens| {
        let tokens = tokens.into_iter().map(|(token, text)| match token_class(token) {
            "" => text.into_any(),
            class => view! { <span class=class>{text}</span> }.into_any(),
        });
        view! { <span class="code-line">{tokens.collect_view()}{"\n"}</span> }
    });
    view! {
        <pre class="code" tabindex="0" aria-label=name><code>{lines.collect_view()}</code></pre>
        {has_masked_values.then(|| view! { <p class="code-note">{t().server_pages().configs.hidden}</p> })}
        {omission.map(|note| view! { <p class="code-note">{note}</p> })}
    }
    .into_erased()
}

/// Returns the lines that are shown; of a very long line, its beginning.
fn visible_beginning(text: &str) -> &str {
    let end_of_lines = text.match_indices('\n').nth(MAX_LINES - 1).map_or(text.len(), |(index, _)| index + 1);
    &text[..text.floor_char_boundary(end_of_lines.min(MAX_BYTES))]
}

/// Says that only this beginning is shown.
fn omission_note(visible_text: &str) -> String {
    let words = &t().server_pages().configs;
    if visible_text.ends_with('\n') {
        words.cut.of(visible_text.lines().count() as u64)
    } else {
        words.cut_bytes.of(t().format_bytes(visible_text.len() as u64))
    }
}

/// Splits a text into lines of tokens. Only JSON is tokenized.
fn highlighted_lines(name: &str, text: &str) -> Vec<Vec<(JsonToken, String)>> {
    let tokens = if is_json(name) { tokenize(text) } else { Vec::new() };
    let is_plain = tokens.is_empty() || tokens.len() > MAX_TOKENS;
    let tokens = if is_plain { vec![(JsonToken::Whitespace, text)] } else { tokens };
    let mut lines = vec![Vec::new()];
    for (token, token_text) in tokens {
        for (index, line_part) in token_text.split('\n').enumerate() {
            if index > 0 {
                lines.push(Vec::new());
            }
            if !line_part.is_empty() {
                lines.last_mut().expect("at least one line").push((token, line_part.trim_end_matches('\r').to_owned()));
            }
        }
    }
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn token_class(token: JsonToken) -> &'static str {
    match token {
        JsonToken::Key => "code-key",
        JsonToken::Text => "code-text",
        JsonToken::Number | JsonToken::Literal => "code-number",
        JsonToken::Punctuation => "code-mark",
        JsonToken::Invalid => "code-other",
        JsonToken::Whitespace => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_text() {
        let text = "{\r\n  \"a\": 1\n\n}\n";
        let lines = |name| {
            highlighted_lines(name, text)
                .into_iter()
                .map(|line| line.into_iter().map(|(_, text)| text).collect::<String>())
        };
        for name in ["a.json", "a.toml"] {
            assert_eq!(lines(name).collect::<Vec<_>>(), ["{", "  \"a\": 1", "", "}"], "{name}");
        }
    }

    #[test]
    fn a_long_text_is_shown_from_its_beginning() {
        let lines = |number: usize, width: usize| format!("{}\n", "é".repeat(width)).repeat(number);
        for text in [String::new(), "{}".to_owned(), lines(MAX_LINES, 10), "x".repeat(MAX_BYTES)] {
            assert_eq!(visible_beginning(&text), text);
        }
        assert_eq!(visible_beginning(&lines(MAX_LINES + 1, 10)), lines(MAX_LINES, 10));
        let wide = lines(3, MAX_BYTES);
        assert_eq!(visible_beginning(&wide), "é".repeat(MAX_BYTES / 2));
        assert!(visible_beginning(&format!("x{wide}")).len() < MAX_BYTES, "no character is divided");
    }

    #[test]
    fn many_tokens_are_not_highlighted() {
        let array = |numbers: usize| format!("[{}1]", "1,".repeat(numbers));
        let tokens = |numbers| highlighted_lines("a.json", &array(numbers)).concat().len();
        assert_eq!(tokens(2), 7);
        assert_eq!(tokens(MAX_TOKENS), 1);
    }
}
