//! A line of a log, in its colours.

use std::sync::Arc;

use leptos::prelude::*;

use crate::domain::log_text::{Color, Ink, Span, spans};
use crate::protocol::logs::LogLine;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::logs::marks::{Piece, pieces};

/// Text in its colours, with what is looked for marked.
#[component]
pub(crate) fn Inked(spans: Vec<Span>, #[prop(optional)] marks: Vec<(u32, u32)>) -> impl IntoView {
    let piece = |Piece { ink, marked, text }| match (ink_class(ink), marked) {
        (class, false) if class.is_empty() => text.erased(),
        (class, false) => view! { <span class=class>{text}</span> }.erased(),
        (class, true) => view! { <mark class=class>{text}</mark> }.erased(),
    };
    pieces(spans, &marks).into_iter().map(piece).collect_view().erased()
}

/// What a line of a log says, and what it does not.
#[component]
pub(crate) fn Said(line: Arc<LogLine>) -> impl IntoView {
    let words = t();
    if let Some(bytes) = line.gap {
        return view! { <span class="log-lost">{words.logs.gap.of(words.bytes(bytes))}</span> }.erased();
    }
    let more = (line.omitted > 0)
        .then(|| view! { <span class="log-more">{words.logs.omitted.of(words.bytes(line.omitted))}</span> });
    view! { <span class="log-said"><Inked spans=spans(&line.text) marks=line.matches.clone()/>{more}</span> }.erased()
}

fn ink_class(ink: Ink) -> String {
    // On a background the text has the colour that is read on it.
    let color = match (ink.back, ink.text) {
        (Some(back), _) => match back {
            Color::Black | Color::White | Color::Grey => "back-plain",
            Color::Red => "back-red",
            Color::Green => "back-green",
            Color::Yellow => "back-yellow",
            Color::Blue | Color::Cyan => "back-blue",
            Color::Magenta => "back-magenta",
        },
        (None, Some(text)) => match text {
            // As the rest: black on black is read by nobody.
            Color::Black | Color::White => "",
            Color::Grey => "ink-faint",
            Color::Red => "ink-red",
            Color::Green => "ink-green",
            Color::Yellow => "ink-yellow",
            Color::Blue | Color::Cyan => "ink-blue",
            Color::Magenta => "ink-magenta",
        },
        (None, None) => "",
    };
    let faint = ink.faint && ink.text.is_none() && ink.back.is_none();
    let switches = [
        (ink.strong, "ink-strong"),
        (faint, "ink-faint"),
        (ink.slanted, "ink-slanted"),
        (ink.underlined, "ink-underlined"),
        (ink.struck, "ink-struck"),
    ];
    let on = switches.into_iter().filter(|(on, _)| *on).map(|(_, class)| class);
    let classes: Vec<&str> = std::iter::once(color).chain(on).filter(|class| !class.is_empty()).collect();
    classes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_classes_that_both_themes_can_show() {
        let class = |line: &str| spans(line).pop().map(|span| ink_class(span.ink)).unwrap_or_default();
        for (line, classes) in [
            ("plain", ""),
            ("\u{1b}[30;97mwhite", ""),
            ("\u{1b}[1;38;5;9mred", "ink-red ink-strong"),
            ("\u{1b}[2;31mred", "ink-red"),
            ("\u{1b}[2mfaint", "ink-faint"),
            ("\u{1b}[97;41mon red", "back-red"),
            ("\u{1b}[7minverse", "back-plain"),
            ("\u{1b}[3;4;9mall", "ink-slanted ink-underlined ink-struck"),
        ] {
            assert_eq!(class(line), classes, "{line:?}");
        }
    }
}
