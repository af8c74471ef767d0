//! The places where two texts differ, as a table: in one column, or side by side.

use leptos::prelude::*;

use crate::domain::text::escaped_lines;
use crate::ui::configs::diff::{Fate, Line, beside, hunks};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The changes of one file.
#[component]
pub(crate) fn DiffTable(name: String, old: String, new: String, split: bool) -> impl IntoView {
    let words = &t().plain().configs;
    let (label, caption) = (words.diff_of.of(&name), words.diff_of.of(&name));
    let parts = hunks(&escaped_lines(&old), &escaped_lines(&new)).into_iter().map(|hunk| {
        let rows: Vec<_> = if split {
            beside(hunk).into_iter().map(|(old, new)| pair(old, new).erased()).collect()
        } else {
            hunk.into_iter().map(|line| row(line).erased()).collect()
        };
        view! { <tbody>{rows}</tbody> }
    });
    let parts = parts.collect_view();
    let head = if split {
        view! { <tr><th scope="col">{words.line_before}</th><th scope="col">{words.before}</th><th scope="col">{words.line_after}</th><th scope="col">{words.after}</th></tr> }.erased()
    } else {
        view! { <tr><th scope="col">{words.line_before}</th><th scope="col">{words.line_after}</th><th scope="col">{words.sign}</th><th scope="col">{words.text}</th></tr> }.erased()
    };
    view! {
        <div class="diff-scroll" tabindex="0" role="region" aria-label=label>
            <table class=if split { "diff is-split" } else { "diff" }>
                <caption class="sr-only">{caption}</caption>
                {split.then(|| view! { <colgroup><col class="w-12"/><col/><col class="w-12"/><col/></colgroup> })}
                <thead class="sr-only">{head}</thead>
                {parts}
            </table>
        </div>
    }
    .erased()
}

fn row(line: Line) -> impl IntoView {
    let (class, sign) = look(line.fate);
    view! {
        <tr class=class>
            <td class="diff-number">{line.old}</td>
            <td class="diff-number">{line.new}</td>
            <td class="diff-sign">{sign}</td>
            <td class="diff-text">{text(&line)}</td>
        </tr>
    }
}

fn pair(old: Option<Line>, new: Option<Line>) -> impl IntoView {
    let side = |line: Option<Line>, number: fn(&Line) -> Option<usize>| match line {
        Some(line) => {
            let (class, sign) = look(line.fate);
            view! {
                <td class=format!("diff-number {class}")>{number(&line)}</td>
                <td class=format!("diff-text {class}")><span class="diff-sign">{sign}</span>{text(&line)}</td>
            }
            .erased()
        }
        None => view! { <td class="diff-number is-none"></td><td class="diff-text is-none"></td> }.erased(),
    };
    view! { <tr>{side(old, |line| line.old)}{side(new, |line| line.new)}</tr> }
}

fn look(fate: Fate) -> (&'static str, &'static str) {
    match fate {
        Fate::Stays => ("", " "),
        Fate::Comes => ("is-new", "+"),
        Fate::Goes => ("is-old", "−"),
    }
}

fn text(line: &Line) -> impl IntoView + use<> {
    let pieces = line
        .pieces
        .clone()
        .into_iter()
        .map(|(changed, text)| if changed { view! { <mark>{text}</mark> }.into_any() } else { text.into_any() });
    pieces.collect_view()
}
