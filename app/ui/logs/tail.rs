//! Assembles lines from log chunks.

use std::collections::VecDeque;

use crate::domain::log_text::{StyledSpan, styled_spans, visible_range};
use crate::protocol::jobs::LogChunk;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TailLine {
    /// The number of the line, from 0; it stays the same while the line grows.
    pub number: u64,
    /// Grows with each change of the line, so that keyed lists render it again.
    pub revision: u32,
    pub content: LineContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineContent {
    Text(Vec<StyledSpan>),
    /// This number of bytes is missing.
    Gap(u64),
}

/// The newest lines of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct TailBuffer {
    lines: VecDeque<TailLine>,
    /// The raw text of the line that has not ended.
    open_line: String,
    next_number: u64,
    /// Where the next chunk begins; none before the first chunk.
    next_offset: Option<u64>,
    /// Whether older lines are not shown.
    is_truncated: bool,
}

const MAX_LINES: usize = 5_000;
/// A longer line is broken, so that output without line breaks stays bounded.
const MAX_LINE_BYTES: usize = 16 * 1024;

impl TailBuffer {
    /// Appends a chunk. A repeated chunk changes nothing, and one that begins too late leaves a visible gap.
    pub fn push(&mut self, chunk: &LogChunk) {
        let expected = self.next_offset.unwrap_or(chunk.offset);
        if chunk.offset < expected || chunk.next_offset <= expected && self.next_offset.is_some() {
            return;
        }
        if self.next_offset.is_none() {
            self.is_truncated = chunk.offset > 0;
        } else if chunk.offset > expected {
            self.end_line();
            self.push_line(LineContent::Gap(chunk.offset - expected));
        }
        self.next_offset = Some(chunk.next_offset);
        let mut text = chunk.text.as_str();
        if self.is_truncated && self.next_number == 0 && self.open_line.is_empty() {
            // The chunk starts within a line.
            text = text.split_once('\n').map_or(text, |(_, rest)| rest);
        }
        let ends_with_break = text.ends_with('\n');
        let mut segments = text.split('\n').peekable();
        let mut has_new_text = false;
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            if is_last && ends_with_break {
                break;
            }
            self.open_line.push_str(segment);
            has_new_text = true;
            if !is_last || self.open_line.len() > MAX_LINE_BYTES {
                self.update_open_line();
                self.end_line();
                has_new_text = false;
            }
        }
        if has_new_text && !self.open_line.is_empty() {
            self.update_open_line();
        }
    }

    /// Where the next chunk begins.
    pub fn next_offset(&self) -> Option<u64> {
        self.next_offset
    }

    /// Whether older lines are not shown.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The lines, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &TailLine> {
        self.lines.iter()
    }

    /// Updates the shown text of the open line: what follows its last `\r`, as on a terminal.
    fn update_open_line(&mut self) {
        let content = LineContent::Text(styled_spans(&self.open_line[visible_range(self.open_line.as_bytes())]));
        match self.lines.back_mut().filter(|line| line.number == self.next_number) {
            Some(line) => {
                line.revision += 1;
                line.content = content;
            }
            None => self.insert_line(content),
        }
    }

    fn end_line(&mut self) {
        if self.lines.back().is_some_and(|line| line.number == self.next_number) {
            self.next_number += 1;
        }
        self.open_line.clear();
    }

    fn push_line(&mut self, content: LineContent) {
        self.insert_line(content);
        self.next_number += 1;
    }

    fn insert_line(&mut self, content: LineContent) {
        self.lines.push_back(TailLine { number: self.next_number, revision: 0, content });
        if self.lines.len() > MAX_LINES {
            self.lines.pop_front();
            self.is_truncated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::AttemptNumber;

    fn chunk(offset: u64, text: &str) -> LogChunk {
        let next_offset = offset + text.len() as u64;
        LogChunk { attempt: AttemptNumber(1), offset, next_offset, size: next_offset, text: text.to_owned() }
    }

    fn text(lines: &TailBuffer) -> Vec<String> {
        let joined = |spans: &[StyledSpan]| spans.iter().map(|span| span.text.as_str()).collect::<String>();
        lines
            .iter()
            .map(|line| match &line.content {
                LineContent::Text(spans) => joined(spans),
                LineContent::Gap(bytes) => format!("<gap {bytes}>"),
            })
            .collect()
    }

    #[test]
    fn lines_grow_across_pieces() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(0, "one\ntw"));
        assert_eq!(text(&lines), ["one", "tw"]);
        lines.push(&chunk(6, "o\n\nthree\n"));
        assert_eq!(text(&lines), ["one", "two", "", "three"]);
        let numbers: Vec<_> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(lines.next_offset(), Some(15));
        assert!(!lines.is_truncated());
    }

    #[test]
    fn progress_bar_is_one_line() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(0, "10%\r20%\r"));
        assert_eq!(text(&lines), ["20%"]);
        lines.push(&chunk(8, "30%\r\ndone\r\n"));
        assert_eq!(text(&lines), ["30%", "done"]);
    }

    #[test]
    fn pieces_may_come_twice_or_leave_a_gap() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(0, "a\n"));
        lines.push(&chunk(0, "a\n"));
        assert_eq!(text(&lines), ["a"]);
        lines.push(&chunk(10, "b\n"));
        assert_eq!(text(&lines), ["a", "<gap 8>", "b"]);
    }

    #[test]
    fn tail_starts_with_a_complete_line() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(100, "rest of a line\nnext\n"));
        assert_eq!(text(&lines), ["next"]);
        assert!(lines.is_truncated());
    }

    #[test]
    fn only_the_newest_lines_are_kept() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(0, &"x\n".repeat(MAX_LINES + 7)));
        assert_eq!(lines.iter().count(), MAX_LINES);
        assert!(lines.is_truncated());
        let mut endless = TailBuffer::default();
        for round in 0..3_u64 {
            endless.push(&chunk(round * 20_000, &"y".repeat(20_000)));
        }
        assert_eq!(endless.iter().count(), 3);
    }

    #[test]
    fn empty_log_has_no_lines() {
        let mut lines = TailBuffer::default();
        lines.push(&chunk(0, ""));
        assert!(text(&lines).is_empty());
        lines.push(&chunk(0, "first\n"));
        assert_eq!(text(&lines), ["first"]);
    }
}
