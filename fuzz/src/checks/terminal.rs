//! A log as a page shows it: cut by the first line, the rest is the log. However it is cut, it reads the same; nothing is
//! shown that steers a terminal, and nothing that was not there.

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
    let mut left = log.chars();
    for line in uncut.iter() {
        let LineContent::Text(spans) = &line.content else { panic!("nothing is missing") };
        assert!(spans.iter().all(|span| !span.text.is_empty()));
        assert!(spans.windows(2).all(|pair| pair[0].style != pair[1].style));
        let mut visible = spans.iter().flat_map(|span| span.text.chars());
        assert!(
            visible.all(|c| (c == '\t' || !is_control_or_invisible(c))
                && left.any(|original| original == c || replacement_symbol(original) == Some(c))),
            "it was there, in order"
        );
    }
    twice_and_with_a_gap(log);
}

/// Unicode's picture of a control character; its replacement character for what else acts.
fn replacement_symbol(original: char) -> Option<char> {
    match u32::from(original) {
        code @ 0..0x20 => char::from_u32('\u{2400}' as u32 + code),
        0x7f => Some('\u{2421}'),
        _ => is_control_or_invisible(original).then_some(char::REPLACEMENT_CHARACTER),
    }
}

fn pieces(log: &str, mut cuts: impl Iterator<Item = usize>) -> Vec<(u64, &str)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < log.len() {
        let end = log.ceil_char_boundary(at + cuts.next().unwrap_or(1));
        found.push((at as u64, &log[at..end]));
        at = end;
    }
    found
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

fn twice_and_with_a_gap(log: &str) {
    let mut lines = tail_buffer([(0, log)].into_iter());
    let before = texts(&lines).len();
    lines.push(&chunk(0, log));
    assert_eq!(texts(&lines).len(), before, "what was here changes nothing");
    lines.push(&chunk(log.len() as u64 + 5, "end"));
    let gaps = lines.iter().filter(|line| line.content == LineContent::Gap(5)).count();
    assert_eq!(gaps, 1, "what is missing is said");
    assert_eq!(lines.next_offset(), Some(log.len() as u64 + 8));
}
