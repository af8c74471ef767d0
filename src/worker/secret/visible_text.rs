//! A terminal's output without control characters and escape sequences, and the origin of each byte.

use std::ops::Range;

/// The longest escape sequence, in bytes after its ESC. The rest of a longer or unterminated one is text.
pub const MAX_SEQUENCE_BYTES: usize = 2_048;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

#[derive(Debug, Default)]
pub struct VisibleText {
    /// The visible text.
    pub text: Vec<u8>,
    runs: Vec<TextRun>,
}

/// Bytes that are contiguous both in the text and in the raw output.
#[derive(Debug)]
struct TextRun {
    text: usize,
    raw: usize,
}

impl VisibleText {
    /// Drops what a terminal does not show.
    pub fn from_raw(raw: &[u8]) -> Self {
        let mut visible = Self { text: Vec::with_capacity(raw.len()), runs: Vec::new() };
        let mut offset = 0;
        while offset < raw.len() {
            let rest = &raw[offset..];
            let visible_len = rest.iter().position(|byte| can_be_hidden(*byte)).unwrap_or(rest.len());
            let hidden = rest.get(visible_len..).map_or(0, hidden_len);
            // The first byte of a character, which looked like that of a control character.
            let visible_len = if visible_len < rest.len() && hidden == 0 { visible_len + 1 } else { visible_len };
            if visible_len > 0 {
                visible.runs.push(TextRun { text: visible.text.len(), raw: offset });
                visible.text.extend_from_slice(&rest[..visible_len]);
            }
            offset += visible_len + hidden;
        }
        visible
    }

    /// The raw offset of a byte of the text.
    pub fn raw_offset(&self, offset: usize) -> usize {
        let after = self.runs.partition_point(|run| run.text <= offset);
        self.runs.get(after.saturating_sub(1)).map_or(offset, |run| run.raw + (offset - run.text))
    }

    /// The raw ranges of a range of the text.
    pub fn raw_ranges(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.runs.partition_point(|run| run.text <= range.start).saturating_sub(1);
        let runs = self.runs[first..].iter().enumerate().take_while(move |(_, run)| run.text < range.end);
        runs.map(move |(index, run)| {
            let end = self.runs.get(first + index + 1).map_or(self.text.len(), |next| next.text);
            let (from, to) = (range.start.max(run.text), range.end.min(end));
            run.raw + (from - run.text)..run.raw + (to - run.text)
        })
    }
}

fn can_be_hidden(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f || byte == 0xc2
}

/// How many bytes at the beginning are invisible.
fn hidden_len(bytes: &[u8]) -> usize {
    match bytes {
        [ESC, rest @ ..] => 1 + escape_sequence_len(rest),
        // U+0080 to U+009F, or the first half of one before the second half has arrived.
        [0xc2, 0x80..=0x9f, ..] => 2,
        [0..=0x1f | 0x7f, ..] | [0xc2] => 1,
        _ => 0,
    }
}

/// The length of an escape sequence after its ESC.
fn escape_sequence_len(rest: &[u8]) -> usize {
    let limited = &rest[..rest.len().min(MAX_SEQUENCE_BYTES)];
    match limited {
        [b'[', rest @ ..] => {
            // Parameters and intermediates are 0x20–0x3f, the final byte 0x40–0x7e (ECMA-48, 5.4).
            let codes = rest.iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
            1 + codes + usize::from(matches!(rest.get(codes), Some(b'@'..=b'~')))
        }
        [b']', rest @ ..] => 1 + osc_len(rest),
        [b' '..=b'/', ..] => {
            let codes = limited.iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
            codes + usize::from(matches!(limited.get(codes), Some(b'0'..=b'~')))
        }
        [] | [..=0x1f | 0x7f, ..] | [0xc2] | [0xc2, 0x80..=0x9f, ..] => 0,
        // Any other character, with all its bytes.
        [_, rest @ ..] => 1 + rest.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count(),
    }
}

/// The length of an operating system command (a window title, a link): to BEL or ESC `\`, or to the end of its line.
fn osc_len(rest: &[u8]) -> usize {
    let end = rest.iter().position(|byte| matches!(*byte, BEL | ESC | b'\n')).unwrap_or(rest.len());
    match rest.get(end..) {
        Some([ESC, b'\\', ..]) => end + 2,
        Some([ESC | BEL, ..]) => end + 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use app::domain::log_text::plain_text;
    use proptest::prelude::*;

    use super::*;

    fn visible_part(raw: &str) -> String {
        String::from_utf8_lossy(&VisibleText::from_raw(raw.as_bytes()).text).into_owned()
    }

    #[test]
    fn escape_sequences_and_control_characters_are_dropped() {
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
            assert_eq!(visible_part(raw), expected, "{raw:?}");
        }
        let endless = format!("\u{1b}]{}", "x".repeat(MAX_SEQUENCE_BYTES + 1));
        assert_eq!(visible_part(&endless), "xx", "it ends at its limit");
    }

    #[test]
    fn every_visible_byte_has_its_raw_offset() {
        let raw = "a\u{1b}[mbc\nd";
        let visible = VisibleText::from_raw(raw.as_bytes());
        assert_eq!((0..4).map(|offset| visible.raw_offset(offset)).collect::<Vec<_>>(), [0, 4, 5, 7]);
        assert_eq!(visible.raw_ranges(0..4).collect::<Vec<_>>(), [0..1, 4..6, 7..8]);
        assert_eq!(visible.raw_ranges(2..3).next(), Some(5..6));
    }

    proptest! {
        /// A log page shows a line by the same rules; otherwise a secret that is interrupted here could be whole there.
        #[test]
        fn visible_text_equals_the_log_page(line in "[a-c \\x1b\\[\\]()\\\\m;0-9\\r\\t\\x07é\u{85}]{0,40}") {
            // Markers there stand for what is left out here.
            let page: String = plain_text(&line).chars().filter(|c| !matches!(c, '\t' | '\u{2400}'..='\u{2421}' | '\u{fffd}')).collect();
            prop_assert_eq!(visible_part(&line), page);
        }
    }
}
