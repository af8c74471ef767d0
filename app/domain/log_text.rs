//! What a line of a log says to a reader. A terminal would show what was written last, in colours; of its other sequences
//! nothing is left, and what nobody could see, or what would turn the text around, stands there as a sign.

mod ink;

use std::borrow::Cow;
use std::ops::Range;

use self::ink::Pen;
pub use self::ink::{Color, Ink};
use super::text::acts;

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// How it is shown.
    pub ink: Ink,
    /// What it says.
    pub text: String,
}

/// Where in a line stands what was written last: behind the last carriage return that anything comes after, as a
/// progress bar is drawn.
pub fn last_write(line: &[u8]) -> Range<usize> {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    let start = line[..end].iter().rposition(|byte| *byte == b'\r').map_or(0, |last| last + 1);
    start..end
}

/// What a line says, without its colours: what is searched, and what places in it count by.
pub fn plain(line: &str) -> Cow<'_, str> {
    if line.bytes().all(|byte| byte == b'\t' || matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(line);
    }
    let mut said = String::with_capacity(line.len());
    read(line, |_, shown| said.push(shown));
    Cow::Owned(said)
}

/// Splits a line at its colour changes, and drops every other escape sequence.
pub fn spans(line: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    read(line, |ink, shown| match found.last_mut() {
        Some(last) if last.ink == ink => last.text.push(shown),
        _ => found.push(Span { ink, text: shown.to_string() }),
    });
    found
}

/// Tells each character of a line that is shown, and how.
fn read(line: &str, mut shows: impl FnMut(Ink, char)) {
    let mut pen = Pen::default();
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => match rest.clone().next() {
                Some('[') => {
                    // Parameters and intermediates are 0x20–0x3f, the final byte 0x40–0x7e (ECMA-48, 5.4).
                    let sequence = &rest.as_str()[1..];
                    let length = sequence.find(|part| !matches!(part, ' '..='?')).unwrap_or(sequence.len());
                    let (codes, behind) = sequence.split_at(length);
                    rest = behind.chars();
                    if let Some('@'..='~') = behind.chars().next() {
                        rest.next();
                    }
                    // With another mark before or behind its numbers it is another sequence.
                    if behind.starts_with('m') && codes.chars().all(|code| matches!(code, '0'..=';')) {
                        pen = pen.after(codes);
                    }
                }
                Some(']') => skip_string(&mut rest),
                // Intermediates and a final byte, as in the choice of a character set (ECMA-35, 13.2.1).
                Some(' '..='/') => {
                    let behind = rest.as_str().trim_start_matches(|part| matches!(part, ' '..='/'));
                    rest = behind.strip_prefix(|part| matches!(part, '0'..='~')).unwrap_or(behind).chars();
                }
                Some(other) if !other.is_control() => drop(rest.next()),
                _ => {}
            },
            '\t' => shows(pen.ink(), '\t'),
            other => shows(pen.ink(), sign(other).unwrap_or(other)),
        }
    }
}

/// What stands for a character that cannot be seen, or that would turn the text around.
fn sign(c: char) -> Option<char> {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        c if acts(c) => Some('\u{fffd}'),
        _ => None,
    }
}

/// An operating-system command (a window title, a link): up to BEL or ESC `\`.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(next) = rest.next() {
        if next == '\u{7}' {
            return;
        }
        if next == '\u{1b}' {
            *rest = rest.as_str().strip_prefix('\\').unwrap_or(rest.as_str()).chars();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Ink =
        Ink { text: None, back: None, strong: false, faint: false, slanted: false, underlined: false, struck: false };

    fn shown(line: &str) -> Vec<(Ink, String)> {
        spans(line).into_iter().map(|span| (span.ink, span.text)).collect()
    }

    #[test]
    fn colours_become_spans() {
        let colour = |color| Ink { text: Some(color), ..PLAIN };
        assert_eq!(
            shown("a\u{1b}[1;31mERROR\u{1b}[0m b\u{1b}[38;5;14mc"),
            vec![
                (PLAIN, "a".into()),
                (Ink { strong: true, ..colour(Color::Red) }, "ERROR".into()),
                (PLAIN, " b".into()),
                (colour(Color::Cyan), "c".into())
            ]
        );
        assert_eq!(shown("\u{1b}[1mbold\u{1b}[m"), vec![(Ink { strong: true, ..PLAIN }, "bold".into())]);
    }

    #[test]
    fn everything_else_is_dropped() {
        assert_eq!(shown("x\u{1b}[2K\u{1b}[1Ay"), vec![(PLAIN, "xy".into())]);
        assert_eq!(shown("\u{1b}[>4;1mx\u{1b}[?1my\u{1b}[1 mz"), vec![(PLAIN, "xyz".into())]);
        assert_eq!(shown("\u{1b}]0;title\u{7}z"), vec![(PLAIN, "z".into())]);
        assert_eq!(shown("\u{1b}]8;;javascript:x\u{1b}\\z"), vec![(PLAIN, "z".into())]);
        assert_eq!(shown("\u{1b}(Ba\u{1b}=b\u{1b}\u{1b}[1Ac"), vec![(PLAIN, "abc".into())]);
        assert_eq!(shown("cut\u{1b}"), vec![(PLAIN, "cut".into())]);
        assert_eq!(shown("cut\u{1b}[3"), vec![(PLAIN, "cut".into())]);
        assert_eq!(shown("a\u{1b}[3ü"), vec![(PLAIN, "aü".into())]);
        assert!(shown("").is_empty());
    }

    #[test]
    fn what_cannot_be_seen_or_turns_the_text_around_is_a_sign() {
        assert_eq!(shown("a\u{8}\u{7}\0\u{7f}\tb"), vec![(PLAIN, "a␈␇␀␡\tb".into())]);
        assert_eq!(shown("user\u{202e}nimda\u{2066}\u{feff}\u{85}"), vec![(PLAIN, "user�nimda���".into())]);
        assert_eq!(shown("שלום 👩🏽\u{200d}🚀 é"), vec![(PLAIN, "שלום 👩🏽\u{200d}🚀 é".into())]);
    }

    #[test]
    fn what_was_written_last_is_what_a_line_says() {
        for (line, said) in [
            ("", ""),
            ("a", "a"),
            ("10%\r20%", "20%"),
            ("10%\r20%\r", "20%"),
            ("done\r\r", "done"),
            ("\r\r", ""),
            ("a\r\rb", "b"),
        ] {
            assert_eq!(&line[last_write(line.as_bytes())], said, "{line:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn plain_text_is_that_of_the_spans(line in "[a-c\\x1b\\[\\]m;:0-9\\r\\t\\x07\u{202e}é]{0,40}") {
            let spans = spans(&line).into_iter().map(|span| span.text).collect::<String>();
            proptest::prop_assert_eq!(plain(&line), spans);
        }

        #[test]
        fn no_colour_takes_text_away_and_a_reset_takes_every_colour(
            parts in proptest::collection::vec(("[0-9;:]{0,20}", "[a-cé]{1,4}"), 0..6),
        ) {
            let line = parts.iter().fold(String::new(), |line, (codes, text)| line + "\u{1b}[" + codes + "m" + text);
            let said: String = parts.iter().map(|(_, text)| text.as_str()).collect();
            proptest::prop_assert_eq!(plain(&line), said.as_str());
            let last = spans(&format!("{line}\u{1b}[mend")).pop();
            proptest::prop_assert_eq!(last.map(|last| (last.ink, last.text.ends_with("end"))), Some((PLAIN, true)));
        }
    }
}
