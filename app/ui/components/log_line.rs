//! A line of a log, in its colours.

use std::sync::Arc;

use leptos::prelude::*;

use crate::domain::log_text::{Ink, Span, spans};
use crate::protocol::logs::LogLine;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::logs::marks::{Piece, pieces};

/// Text in its colours, with what is looked for marked.
#[component]
pub(crate) fn Inked(spans: Vec<Span>, #[prop(optional)] marks: Vec<(u32, u32)>) -> impl IntoView {
    let piece = |Piece { ink, marked, text }| match (ink_class(ink), marked) {
        ("", false) => text.erased(),
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

const fn ink_class(ink: Ink) -> &'static str {
    match ink {
        Ink::Plain => "",
        Ink::Strong => "ink-strong",
        Ink::Faint => "ink-faint",
        Ink::Red => "ink-red",
        Ink::Green => "ink-green",
        Ink::Yellow => "ink-yellow",
        Ink::Blue => "ink-blue",
        Ink::Magenta => "ink-magenta",
        Ink::Cyan => "ink-cyan",
    }
}
