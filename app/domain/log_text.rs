//! The readable text of a log line. It shows the last overwritten version, in colors, like a terminal. All other escape
//! sequences are removed; invisible characters, and those that change the direction of text, are replaced by symbols.

pub mod arrivals;
pub mod links;
pub mod ranks;
mod sgr;

use std::borrow::Cow;
use std::ops::Range;

use self::sgr::SgrState;
pub use self::sgr::{TerminalColor, TextStyle};
use super::text::is_control_or_invisible;

/// A part of a line with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    /// The style.
    pub style: TextStyle,
    /// The text.
    pub text: String,
}

/// Returns the visible range of a line: after the last carriage return that is followed by text, as progress bars write
/// it.
pub fn visible_range(line: &[u8]) -> Range<usize> {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    let start = line[..end].iter().rposition(|byte| *byte == b'\r').map_or(0, |last| last + 1);
    start..end
}

/// Returns a line without colors: the text that is searched, and in which positions are counted.
pub fn plain_text(line: &str) -> Cow<'_, str> {
    if line.bytes().all(|byte| byte == b'\t' || matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    scan(line, |_, c| text.push(c));
    Cow::Owned(text)
}

/// Returns whether a text to search for has capitals: only then case is significant.
pub fn has_uppercase(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

/// Splits a line at its color changes, and removes all other escape sequences.
pub fn styled_spans(line: &str) -> Vec<StyledSpan> {
    let mut spans: Vec<StyledSpan> = Vec::new();
    scan(line, |style, c| match spans.last_mut() {
        Some(last) if last.style == style => last.text.push(c),
        _ => spans.push(StyledSpan { style, text: c.to_string() }),
    });
    spans
}

/// Calls `emit` for each visible character with its style.
fn scan(line: &str, mut emit: impl FnMut(TextStyle, char)) {
    let mut state = SgrState::default();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.clone().next() {
                Some('[') => {
                    // Parameters and intermediates are 0x20–0x3f, the final byte 0x40–0x7e (ECMA-48, 5.4).
                    let sequence = &rest.as_str()[1..];
                    let length = sequence.find(|c| !matches!(c, ' '..='?')).unwrap_or(sequence.len());
                    let (codes, after_codes) = sequence.split_at(length);
                    rest = after_codes.chars();
                    if let Some('@'..='~') = after_codes.chars().next() {
                        rest.next();
                    }
                    // With a prefix or an intermediate byte it is a different sequence.
                    if after_codes.starts_with('m') && codes.chars().all(|c| matches!(c, '0'..=';')) {
                        state = state.apply(codes);
                    }
                }
                Some(']') => skip_string(&mut rest),
                // Intermediate bytes and a final byte, as in the selection of a character set (ECMA-35, 13.2.1).
                Some(' '..='/') => {
                    let after_codes = rest.as_str().trim_start_matches(|c| matches!(c, ' '..='/'));
                    rest = after_codes.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(after_codes).chars();
                }
                Some(other) if !other.is_control() => drop(rest.next()),
                _ => {}
            },
            '\t' => emit(state.style(), '\t'),
            c => emit(state.style(), replacement_symbol(c).unwrap_or(c)),
        }
    }
}

/// Returns the replacement of a character that is invisible or changes the direction of text.
fn replacement_symbol(c: char) -> Option<char> {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        c if is_control_or_invisible(c) => Some('\u{fffd}'),
        _ => None,
    }
}

/// Skips an operating system command (a window title, a link), up to BEL or ESC `\`.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(c) = rest.next() {
        if c == '\u{7}' {
            return;
        }
        if c == '\u{1b}' {
            *rest = rest.as_str().strip_prefix('\\').unwrap_or(rest.as_str()).chars();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TextStyle = TextStyle {
        foreground: None,
        background: None,
        bold: false,
        dim: false,
        italic: false,
        underlined: false,
        strikethrough: false,
    };

    fn spans_of(line: &str) -> Vec<(TextStyle, String)> {
        styled_spans(line).into_iter().map(|span| (span.style, span.text)).collect()
    }

    #[test]
    fn colors_become_spans() {
        let text_color = |color| TextStyle { foreground: Some(color), ..PLAIN };
        assert_eq!(
            spans_of("a\u{1b}[1;31mERROR\u{1b}[0m b\u{1b}[38;5;14mc"),
            vec![
                (PLAIN, "a".into()),
                (TextStyle { bold: true, ..text_color(TerminalColor::Red) }, "ERROR".into()),
                (PLAIN, " b".into()),
                (text_color(TerminalColor::Cyan), "c".into())
            ]
        );
        assert_eq!(spans_of("\u{1b}[1mbold\u{1b}[m"), vec![(TextStyle { bold: true, ..PLAIN }, "bold".into())]);
    }

    #[test]
    fn other_escape_sequences_are_removed() {
        assert_eq!(spans_of("x\u{1b}[2K\u{1b}[1Ay"), vec![(PLAIN, "xy".into())]);
        assert_eq!(spans_of("\u{1b}[>4;1mx\u{1b}[?1my\u{1b}[1 mz"), vec![(PLAIN, "xyz".into())]);
        assert_eq!(spans_of("\u{1b}]0;title\u{7}z"), vec![(PLAIN, "z".into())]);
        assert_eq!(spans_of("\u{1b}]8;;javascript:x\u{1b}\\z"), vec![(PLAIN, "z".into())]);
        assert_eq!(spans_of("\u{1b}(Ba\u{1b}=b\u{1b}\u{1b}[1Ac"), vec![(PLAIN, "abc".into())]);
        assert_eq!(spans_of("cut\u{1b}"), vec![(PLAIN, "cut".into())]);
        assert_eq!(spans_of("cut\u{1b}[3"), vec![(PLAIN, "cut".into())]);
        assert_eq!(spans_of("a\u{1b}[3ü"), vec![(PLAIN, "aü".into())]);
        assert!(spans_of("").is_empty());
    }

    #[test]
    fn invisible_and_bidirectional_characters_are_replaced() {
        assert_eq!(spans_of("a\u{8}\u{7}\0\u{7f}\tb"), vec![(PLAIN, "a␈␇␀␡\tb".into())]);
        assert_eq!(spans_of("user\u{202e}nimda\u{2066}\u{feff}\u{85}"), vec![(PLAIN, "user�nimda���".into())]);
        assert_eq!(spans_of("שלום 👩🏽\u{200d}🚀 é"), vec![(PLAIN, "שלום 👩🏽\u{200d}🚀 é".into())]);
    }

    #[test]
    fn last_overwritten_text_is_visible() {
        for (line, visible) in [
            ("", ""),
            ("a", "a"),
            ("10%\r20%", "20%"),
            ("10%\r20%\r", "20%"),
            ("done\r\r", "done"),
            ("\r\r", ""),
            ("a\r\rb", "b"),
        ] {
            assert_eq!(&line[visible_range(line.as_bytes())], visible, "{line:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn plain_text_equals_the_spans(line in "[a-c\\x1b\\[\\]m;:0-9\\r\\t\\x07\u{202e}é]{0,40}") {
            let spans = styled_spans(&line).into_iter().map(|span| span.text).collect::<String>();
            proptest::prop_assert_eq!(plain_text(&line), spans);
        }

        #[test]
        fn colors_keep_text_and_reset_clears_style(
            parts in proptest::collection::vec(("[0-9;:]{0,20}", "[a-cé]{1,4}"), 0..6),
        ) {
            let line = parts.iter().fold(String::new(), |line, (codes, text)| line + "\u{1b}[" + codes + "m" + text);
            let expected: String = parts.iter().map(|(_, text)| text.as_str()).collect();
            proptest::prop_assert_eq!(plain_text(&line), expected.as_str());
            let last = styled_spans(&format!("{line}\u{1b}[mend")).pop();
            proptest::prop_assert_eq!(last.map(|last| (last.style, last.text.ends_with("end"))), Some((PLAIN, true)));
        }
    }
}
