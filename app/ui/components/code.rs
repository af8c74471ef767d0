//! The text of a file: its lines with their numbers, and JSON in colours.

use leptos::prelude::*;

use crate::domain::text::escaped_lines;
use crate::ui::configs::json::{Ink, pieces};
use crate::ui::configs::{is_json, readable};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// So many lines of a file are shown.
const MOST: usize = 2_000;

/// A file.
#[component]
pub(crate) fn FileText(name: String, text: String) -> impl IntoView {
    let whole = escaped_lines(&readable(&name, &text)).into_owned();
    let hidden = is_json(&name) && whole.contains("••••••••");
    let cut = whole.lines().nth(MOST).is_some();
    let lines: Vec<Vec<(Ink, String)>> = lines(&name, &whole).into_iter().take(MOST).collect();
    let lines = lines.into_iter().map(|pieces| {
        let pieces = pieces.into_iter().map(|(ink, text)| match ink_class(ink) {
            "" => text.into_any(),
            class => view! { <span class=class>{text}</span> }.into_any(),
        });
        view! { <span class="code-line">{pieces.collect_view()}{"\n"}</span> }
    });
    view! {
        <pre class="code" tabindex="0" aria-label=name><code>{lines.collect_view()}</code></pre>
        {hidden.then(|| view! { <p class="code-note">{t().plain().configs.hidden}</p> })}
        {cut.then(|| view! { <p class="code-note">{t().plain().configs.cut.of(MOST as u64)}</p> })}
    }
    .erased()
}

/// The pieces of each line.
fn lines(name: &str, text: &str) -> Vec<Vec<(Ink, String)>> {
    let pieces = if is_json(name) { pieces(text) } else { vec![(Ink::Blank, text)] };
    let mut lines = vec![Vec::new()];
    for (ink, piece) in pieces {
        for (at, part) in piece.split('\n').enumerate() {
            if at > 0 {
                lines.push(Vec::new());
            }
            if !part.is_empty() {
                lines.last_mut().expect("one at least").push((ink, part.trim_end_matches('\r').to_owned()));
            }
        }
    }
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn ink_class(ink: Ink) -> &'static str {
    match ink {
        Ink::Key => "code-key",
        Ink::Text => "code-text",
        Ink::Number | Ink::Word => "code-number",
        Ink::Mark => "code-mark",
        Ink::Other => "code-other",
        Ink::Blank => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_text() {
        let text = "{\r\n  \"a\": 1\n\n}\n";
        let of =
            |name| lines(name, text).into_iter().map(|line| line.into_iter().map(|(_, text)| text).collect::<String>());
        for name in ["a.json", "a.toml"] {
            assert_eq!(of(name).collect::<Vec<_>>(), ["{", "  \"a\": 1", "", "}"], "{name}");
        }
    }
}
