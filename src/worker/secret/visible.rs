//! Bytes of a terminal's output without its control characters and escape sequences, and where each byte came from.

use std::ops::Range;

/// The longest escape sequence, in bytes behind its ESC. What follows in a longer one, or one that never ends, is text.
pub const SEQUENCE: usize = 2_048;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// See the module.
#[derive(Debug, Default)]
pub struct Visible {
    /// What is left.
    pub text: Vec<u8>,
    runs: Vec<Run>,
}

/// Bytes that follow each other both in the text and in what it came from.
#[derive(Debug)]
struct Run {
    text: usize,
    raw: usize,
}

impl Visible {
    /// Drops what a terminal does not show.
    pub fn of(raw: &[u8]) -> Self {
        let mut visible = Self { text: Vec::with_capacity(raw.len()), runs: Vec::new() };
        let mut at = 0;
        while at < raw.len() {
            let rest = &raw[at..];
            let shown = rest.iter().position(|byte| may_be_hidden(*byte)).unwrap_or(rest.len());
            let hidden = rest.get(shown..).map_or(0, hidden);
            // A first byte of a character that looked like a control character's.
            let shown = if shown < rest.len() && hidden == 0 { shown + 1 } else { shown };
            if shown > 0 {
                visible.runs.push(Run { text: visible.text.len(), raw: at });
                visible.text.extend_from_slice(&rest[..shown]);
            }
            at += shown + hidden;
        }
        visible
    }

    /// Where a byte of the text came from.
    pub fn origin(&self, at: usize) -> usize {
        let after = self.runs.partition_point(|run| run.text <= at);
        self.runs.get(after.saturating_sub(1)).map_or(at, |run| run.raw + (at - run.text))
    }

    /// Where a range of the text came from, in as many pieces as it was cut into.
    pub fn origins(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.runs.partition_point(|run| run.text <= range.start).saturating_sub(1);
        let runs = self.runs[first..].iter().enumerate().take_while(move |(_, run)| run.text < range.end);
        runs.map(move |(place, run)| {
            let end = self.runs.get(first + place + 1).map_or(self.text.len(), |next| next.text);
            let (from, to) = (range.start.max(run.text), range.end.min(end));
            run.raw + (from - run.text)..run.raw + (to - run.text)
        })
    }
}

fn may_be_hidden(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f || byte == 0xc2
}

/// How many bytes at the beginning are not shown.
fn hidden(bytes: &[u8]) -> usize {
    match bytes {
        [ESC, rest @ ..] => 1 + sequence(rest),
        // U+0080 to U+009F, or the first half of one before the second has come.
        [0xc2, 0x80..=0x9f, ..] => 2,
        [0..=0x1f | 0x7f, ..] | [0xc2] => 1,
        _ => 0,
    }
}

/// How long an escape sequence is behind its ESC.
fn sequence(rest: &[u8]) -> usize {
    let within = &rest[..rest.len().min(SEQUENCE)];
    match within {
        [b'[', rest @ ..] => {
            // Parameters and intermediates are 0x20–0x3f, the final byte 0x40–0x7e (ECMA-48, 5.4).
            let codes = rest.iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
            1 + codes + usize::from(matches!(rest.get(codes), Some(b'@'..=b'~')))
        }
        [b']', rest @ ..] => 1 + command(rest),
        [b' '..=b'/', ..] => {
            let codes = within.iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
            codes + usize::from(matches!(within.get(codes), Some(b'0'..=b'~')))
        }
        [] | [..=0x1f | 0x7f, ..] | [0xc2] | [0xc2, 0x80..=0x9f, ..] => 0,
        // Any other character, with all of its bytes.
        [_, rest @ ..] => 1 + rest.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count(),
    }
}

/// How long an operating-system command (a window title, a link) is: to BEL or ESC `\`, or to the end of its line.
fn command(rest: &[u8]) -> usize {
    let end = rest.iter().position(|byte| matches!(*byte, BEL | ESC | b'\n')).unwrap_or(rest.len());
    match rest.get(end..) {
        Some([ESC, b'\\', ..]) => end + 2,
        Some([ESC | BEL, ..]) => end + 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use app::domain::log_text::plain;
    use proptest::prelude::*;

    use super::*;

    fn shown(raw: &str) -> String {
        String::from_utf8_lossy(&Visible::of(raw.as_bytes()).text).into_owned()
    }

    #[test]
    fn sequences_and_control_characters_are_left_out() {
        for (raw, expected) in [
            ("a\u{1b}[1;38;5;14mb\u{1b}[0mc", "abc"),
            ("a\u{1b}[2K\u{1b}[1Ab\rc\td\u{8}e\nf", "abcdef"),
            ("a\u{1b}]8;;https://x\u{1b}\\b\u{1b}]0;title\u{7}c", "abc"),
            ("a\u{1b}(Bb\u{1b}=c\u{1b}\u{1b}[md\u{1b}", "abcd"),
            ("a\u{85}b\u{a0}é日", "ab\u{a0}é日"),
            ("a\u{1b}]no end\nb", "ab"),
            ("\u{1b}[3", ""),
            ("", ""),
        ] {
            assert_eq!(shown(raw), expected, "{raw:?}");
        }
        let endless = format!("\u{1b}]{}", "x".repeat(SEQUENCE + 1));
        assert_eq!(shown(&endless), "xx", "it ends at its limit");
    }

    #[test]
    fn every_byte_knows_where_it_came_from() {
        let raw = "a\u{1b}[mbc\nd";
        let visible = Visible::of(raw.as_bytes());
        assert_eq!((0..4).map(|at| visible.origin(at)).collect::<Vec<_>>(), [0, 4, 5, 7]);
        assert_eq!(visible.origins(0..4).collect::<Vec<_>>(), [0..1, 4..6, 7..8]);
        assert_eq!(visible.origins(2..3).next(), Some(5..6));
    }

    proptest! {
        /// A log page shows a line by the same rules; else a secret could be whole there that is cut here.
        #[test]
        fn it_is_what_a_log_page_shows(line in "[a-c \\x1b\\[\\]()\\\\m;0-9\\r\\t\\x07é\u{85}]{0,40}") {
            // Signs stand there for what is left out here.
            let page: String = plain(&line).chars().filter(|c| !matches!(c, '\t' | '\u{2400}'..='\u{2421}' | '\u{fffd}')).collect();
            prop_assert_eq!(shown(&line), page);
        }
    }
}
