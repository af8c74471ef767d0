//! Terminal colours: the few escape sequences that logs use, as spans of plain text. Everything else is dropped.

/// How a span is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    /// As the rest.
    #[default]
    Plain,
    /// Bold.
    Strong,
    /// Dimmed.
    Faint,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub ink: Ink,
    pub text: String,
}

/// Splits a line at its colour changes, and drops every other control sequence and character.
pub(crate) fn spans(line: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut ink = Ink::Plain;
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => match rest.next() {
                Some('[') => {
                    let mut codes = String::new();
                    // Parameters and intermediates are 0x20–0x3f, the final byte 0x40–0x7e (ECMA-48, 5.4).
                    let end = loop {
                        match rest.peek().copied() {
                            Some(part @ ' '..='?') => codes.push(part),
                            Some(end @ '@'..='~') => {
                                rest.next();
                                break Some(end);
                            }
                            _ => break None,
                        }
                        rest.next();
                    };
                    if end == Some('m') {
                        ink = codes.split(';').fold(ink, apply);
                    }
                }
                Some(']') => skip_string(&mut rest),
                _ => {}
            },
            '\t' => push(&mut found, ink, '\t'),
            shown if shown.is_control() => {}
            shown => push(&mut found, ink, shown),
        }
    }
    found
}

/// An operating-system command (a window title, a link): up to BEL or ESC `\`.
fn skip_string(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(next) = rest.next() {
        if next == '\u{7}' {
            return;
        }
        if next == '\u{1b}' {
            rest.next_if_eq(&'\\');
            return;
        }
    }
}

fn apply(ink: Ink, code: &str) -> Ink {
    match code {
        "" | "0" | "22" | "39" => Ink::Plain,
        "1" if ink == Ink::Plain => Ink::Strong,
        "2" if ink == Ink::Plain => Ink::Faint,
        "31" | "91" => Ink::Red,
        "32" | "92" => Ink::Green,
        "33" | "93" => Ink::Yellow,
        "34" | "94" => Ink::Blue,
        "35" | "95" => Ink::Magenta,
        "36" | "96" => Ink::Cyan,
        "90" => Ink::Faint,
        _ => ink,
    }
}

fn push(found: &mut Vec<Span>, ink: Ink, shown: char) {
    match found.last_mut() {
        Some(last) if last.ink == ink => last.text.push(shown),
        _ => found.push(Span { ink, text: shown.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<(Ink, String)> {
        spans(line).into_iter().map(|span| (span.ink, span.text)).collect()
    }

    #[test]
    fn colours_become_spans() {
        assert_eq!(
            shown("a\u{1b}[1;31mERROR\u{1b}[0m b\u{1b}[36mc"),
            vec![
                (Ink::Plain, "a".into()),
                (Ink::Red, "ERROR".into()),
                (Ink::Plain, " b".into()),
                (Ink::Cyan, "c".into())
            ]
        );
        assert_eq!(shown("\u{1b}[1mbold\u{1b}[m"), vec![(Ink::Strong, "bold".into())]);
    }

    #[test]
    fn everything_else_is_dropped() {
        assert_eq!(shown("x\u{1b}[2K\u{1b}[1Ay\u{7}"), vec![(Ink::Plain, "xy".into())]);
        assert_eq!(shown("\u{1b}]0;title\u{7}z"), vec![(Ink::Plain, "z".into())]);
        assert_eq!(shown("\u{1b}]8;;javascript:x\u{1b}\\z"), vec![(Ink::Plain, "z".into())]);
        assert_eq!(shown("cut\u{1b}"), vec![(Ink::Plain, "cut".into())]);
        assert_eq!(shown("cut\u{1b}[3"), vec![(Ink::Plain, "cut".into())]);
        assert_eq!(shown("a\u{1b}[3ü"), vec![(Ink::Plain, "aü".into())]);
        assert!(shown("").is_empty());
    }
}
