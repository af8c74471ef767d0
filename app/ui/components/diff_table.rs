//! The differences between two texts as a table, unified or side by side.

use leptos::prelude::*;

use crate::domain::text::escape_lines;
use crate::ui::configs::diff::{DiffLine, LineChange, hunks, side_by_side};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The changes of one file; `split` shows the two versions side by side.
#[component]
pub(crate) fn DiffTable(name: String, old: String, new: String, split: bool) -> impl IntoView {
    let words = &t().server_pages().configs;
    let (label, caption) = (words.diff_of.of(&name), words.diff_of.of(&name));
    let bodies = hunks(&escape_lines(&old), &escape_lines(&new)).into_iter().map(|hunk| {
        let rows: Vec<_> = if split {
            side_by_side(hunk).into_iter().map(|(old, new)| split_row(old, new).into_erased()).collect()
        } else {
            hunk.into_iter().map(|line| unified_row(line).into_erased()).collect()
        };
        view! { <tbody>{rows}</tbody> }
    });
    let bodies = bodies.collect_view();
    let head = if split {
        view! { <tr><th scope="col">{words.line_before}</th><th scope="col">{words.before}</th><th scope="col">{words.line_after}</th><th scope="col">{words.after}</th></tr> }.into_erased()
    } else {
        view! { <tr><th scope="col">{words.line_before}</th><th scope="col">{words.line_after}</th><th scope="col">{words.sign}</th><th scope="col">{words.text}</th></tr> }.into_erased()
    };
    view! {
        <div class="diff-scroll" tabindex="0" role="region" aria-label=label>
            <table class=if split { "diff is-split" } else { "diff" }>
                <caption class="sr-only">{caption}</caption>
                {split.then(|| view! { <colgroup><col class="w-12"/><col/><col class="w-12"/><col/></colgroup> })}
                <thead class="sr-only">{head}</thead>
                {bodies}
            </table>
        </div>
    }
    .into_erased()
}

fn unified_row(line: DiffLine) -> impl IntoView {
    let (class, sign) = change_style(line.change);
    view! {
        <tr class=class>
            <td class="diff-number">{line.old}</td>
            <td class="diff-number">{line.new}</td>
            <td class="diff-sign">{sign}</td>
            <td class="diff-text">{line_text(&line)}</td>
        </tr>
    }
}

fn split_row(old: Option<DiffLine>, new: Option<DiffLine>) -> impl IntoView {
    let cells = |line: Option<DiffLine>, number: fn(&DiffLine) -> Option<usize>| match line {
        Some(line) => {
            let (class, sign) = change_style(line.change);
            view! {
                <td class=format!("diff-number {class}")>{number(&line)}</td>
                <td class=format!("diff-text {class}")><span class="diff-sign">{sign}</span>{line_text(&line)}</td>
            }
            .into_erased()
        }
        None => view! { <td class="diff-number is-none"></td><td class="diff-text is-none"></td> }.into_erased(),
    };
    view! { <tr>{cells(old, |line| line.old)}{cells(new, |line| line.new)}</tr> }
}

fn change_style(change: LineChange) -> (&'static str, &'static str) {
    match change {
        LineChange::Unchanged => ("", " "),
        LineChange::Added => ("is-new", "+"),
        LineChange::Removed => ("is-old", "−"),
    }
}

fn line_text(line: &DiffLine) -> impl IntoView + use<> {
    let segments = line
        .segments
        .clone()
        .into_iter()
        .map(|(changed, text)| if changed { view! { <mark>{text}</mark> }.into_any() } else { text.into_any() });
    segments.collect_view()
}
