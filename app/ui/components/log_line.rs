//! A log line in its terminal colors.

use std::sync::Arc;

use leptos::prelude::*;

use crate::domain::log_text::{StyledSpan, TerminalColor, TextStyle, styled_spans};
use crate::domain::time::Timestamp;
use crate::protocol::logs::LogLine;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::logs::highlight::{MarkedSpan, highlight};

/// Styled text; `marks` are the ranges of characters that match the search.
#[component]
pub(crate) fn StyledText(spans: Vec<StyledSpan>, #[prop(optional)] marks: Vec<(u32, u32)>) -> impl IntoView {
    let render_span = |MarkedSpan { style, marked, text }| match (style_class(style), marked) {
        (class, false) if class.is_empty() => text.into_erased(),
        (class, false) => view! { <span class=class>{text}</span> }.into_erased(),
        (class, true) => view! { <mark class=class>{text}</mark> }.into_erased(),
    };
    highlight(spans, &marks).into_iter().map(render_span).collect_view().into_erased()
}

/// The text of a line and the number of bytes that are omitted from it; or a gap.
#[component]
pub(crate) fn LogLineText(line: Arc<LogLine>) -> impl IntoView {
    let words = t();
    let time = line.arrived_at.map(|at| view! { <ArrivalTime at=at/> });
    if let Some(bytes) = line.gap {
        return view! { {time}<span class="log-lost">{words.logs.gap.of(words.format_bytes(bytes))}</span> }
            .into_erased();
    }
    let more = (line.omitted > 0)
        .then(|| view! { <span class="log-more">{words.logs.omitted.of(words.format_bytes(line.omitted))}</span> });
    view! { {time}<span class="log-said"><StyledText spans=styled_spans(&line.text) marks=line.matches.clone()/>{more}</span> }.into_erased()
}

/// When a line arrived. The date is not shown where there is little room.
#[component]
fn ArrivalTime(at: Timestamp) -> impl IntoView {
    let clock = use_clock();
    view! {
        <time class="log-time" datetime=at.to_string()>
            <span class="log-date">{move || clock.format_day(at)}" "</span>
            {move || clock.format_seconds(at)}
        </time>
    }
    .into_erased()
}

fn style_class(style: TextStyle) -> String {
    // The class of a background color also sets a text color that is readable on it.
    let color = match (style.background, style.foreground) {
        (Some(background), _) => match background {
            TerminalColor::Black | TerminalColor::White | TerminalColor::Gray => "back-plain",
            TerminalColor::Red => "back-red",
            TerminalColor::Green => "back-green",
            TerminalColor::Yellow => "back-yellow",
            TerminalColor::Blue | TerminalColor::Cyan => "back-blue",
            TerminalColor::Magenta => "back-magenta",
        },
        (None, Some(text)) => match text {
            // The default text color, because either of these is unreadable in one of the themes.
            TerminalColor::Black | TerminalColor::White => "",
            TerminalColor::Gray => "ink-faint",
            TerminalColor::Red => "ink-red",
            TerminalColor::Green => "ink-green",
            TerminalColor::Yellow => "ink-yellow",
            TerminalColor::Blue | TerminalColor::Cyan => "ink-blue",
            TerminalColor::Magenta => "ink-magenta",
        },
        (None, None) => "",
    };
    let faint = style.dim && style.foreground.is_none() && style.background.is_none();
    let attributes = [
        (style.bold, "ink-strong"),
        (faint, "ink-faint"),
        (style.italic, "ink-slanted"),
        (style.underlined, "ink-underlined"),
        (style.strikethrough, "ink-struck"),
    ];
    let active = attributes.into_iter().filter(|(is_on, _)| *is_on).map(|(_, class)| class);
    let classes: Vec<&str> = std::iter::once(color).chain(active).filter(|class| !class.is_empty()).collect();
    classes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_classes_of_both_themes() {
        let class = |line: &str| styled_spans(line).pop().map(|span| style_class(span.style)).unwrap_or_default();
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
