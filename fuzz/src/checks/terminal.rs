//! A log as a page shows it: the first line has the cuts, the rest is the log. The text is the same for all cuts; it
//! has no control characters, and nothing that is not in the log.

use app::domain::ids::AttemptNumber;
use app::domain::text::is_control_or_invisible;
use app::protocol::jobs::LogChunk;

use crate::tail::{LineContent, TailBuffer, TailLine};

/// See the module.
pub fn check(data: &[u8]) {
    let Some((cuts, log)) = super::first_line(data) else { return };
    let uncut = tail_buffer([(0, log)].into_iter());
    let pieced = tail_buffer(pieces(log, super::cuts(cuts.as_bytes())).into_iter());
    assert_eq!(texts(&uncut), texts(&pieced), "cuts change nothing");
    assert_eq!(uncut.next_offset(), Some(log.len() as u64));
    assert!(uncut.iter().zip(uncut.iter().skip(1)).all(|(one, next)| next.number == one.number + 1));
    let mut remaining = log.chars();
    for line in uncut.iter() {
        let LineContent::Text(spans) = &line.content else { panic!("there is no gap") };
        assert!(spans.iter().all(|span| !span.text.is_empty()));
        assert!(spans.windows(2).all(|pair| pair[0].style != pair[1].style));
        let mut visible = spans.iter().flat_map(|span| span.text.chars());
        assert!(
            visible.all(|c| (c == '\t' || !is_control_or_invisible(c))
                && remaining.any(|original| original == c || replacement_symbol(original) == Some(c))),
            "the characters are in the log, in this order"
        );
    }
    assert_repeats_and_gaps(log);
}

/// Returns Unicode's symbol of a control character, or its replacement character for other special characters.
fn replacement_symbol(original: char) -> Option<char> {
    match u32::from(original) {
        code @ 0..0x20 => char::from_u32('\u{2400}' as u32 + code),
        0x7f => Some('\u{2421}'),
        _ => is_control_or_invisible(original).then_some(char::REPLACEMENT_CHARACTER),
    }
}

fn pieces(log: &str, mut cuts: impl Iterator<Item = usize>) -> Vec<(u64, &str)> {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while start < log.len() {
        let end = log.ceil_char_boundary(start + cuts.next().unwrap_or(1));
        pieces.push((start as u64, &log[start..end]));
        start = end;
    }
    pieces
}

fn tail_buffer<'l>(pieces: impl Iterator<Item = (u64, &'l str)>) -> TailBuffer {
    let mut lines = TailBuffer::default();
    lines.push(&chunk(0, ""));
    pieces.for_each(|(offset, text)| lines.push(&chunk(offset, text)));
    lines
}

fn chunk(offset: u64, text: &str) -> LogChunk {
    let next_offset = offset + text.len() as u64;
    LogChunk { attempt: AttemptNumber(1), offset, next_offset, size: next_offset, text: text.to_owned() }
}

fn texts(lines: &TailBuffer) -> Vec<&LineContent> {
    lines.iter().map(|line: &TailLine| &line.content).collect()
}

fn assert_repeats_and_gaps(log: &str) {
    let mut lines = tail_buffer([(0, log)].into_iter());
    let before = texts(&lines).len();
    lines.push(&chunk(0, log));
    assert_eq!(texts(&lines).len(), before, "a repeated chunk changes nothing");
    lines.push(&chunk(log.len() as u64 + 5, "end"));
    let gaps = lines.iter().filter(|line| line.content == LineContent::Gap(5)).count();
    assert_eq!(gaps, 1, "the gap is shown");
    assert_eq!(lines.next_offset(), Some(log.len() as u64 + 8));
}
