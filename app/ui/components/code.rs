//! The text of a file: numbered lines, with syntax highlighting for JSON.

use leptos::prelude::*;

use crate::domain::text::escape_lines;
use crate::ui::configs::json::{JsonToken, tokenize};
use crate::ui::configs::{format_for_display, is_json};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Maximum number of lines that are shown.
const MAX_LINES: usize = 2_000;

/// A file, with notes if values are masked or lines are omitted.
#[component]
pub(crate) fn FileText(name: String, text: String) -> impl IntoView {
    let display_text = escape_lines(&format_for_display(&name, &text)).into_owned();
    let has_masked_values = is_json(&name) && display_text.contains("••••••••");
    let is_truncated = display_text.lines().nth(MAX_LINES).is_some();
    let lines: Vec<Vec<(JsonToken, String)>> =
        highlighted_lines(&name, &display_text).into_iter().take(MAX_LINES).collect();
    let lines = lines.into_iter().map(|tokens| {
        let tokens = tokens.into_iter().map(|(token, text)| match token_class(token) {
            "" => text.into_any(),
            class => view! { <span class=class>{text}</span> }.into_any(),
        });
        view! { <span class="code-line">{tokens.collect_view()}{"\n"}</span> }
    });
    view! {
        <pre class="code" tabindex="0" aria-label=name><code>{lines.collect_view()}</code></pre>
        {has_masked_values.then(|| view! { <p class="code-note">{t().server_pages().configs.hidden}</p> })}
        {is_truncated.then(|| view! { <p class="code-note">{t().server_pages().configs.cut.of(MAX_LINES as u64)}</p> })}
    }
    .into_erased()
}

/// Splits a text into lines of tokens. Only JSON is tokenized.
fn highlighted_lines(name: &str, text: &str) -> Vec<Vec<(JsonToken, String)>> {
    let tokens = if is_json(name) { tokenize(text) } else { vec![(JsonToken::Whitespace, text)] };
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
}
