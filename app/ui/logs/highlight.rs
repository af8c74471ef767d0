//! Highlights search matches in a line.

use crate::domain::log_text::{StyledSpan, TextStyle};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedSpan {
    pub style: TextStyle,
    /// Whether it is part of a match.
    pub marked: bool,
    pub text: String,
}

/// Splits spans where marks begin and end. Marks are ranges of characters, in ascending order.
pub(crate) fn highlight(spans: Vec<StyledSpan>, marks: &[(u32, u32)]) -> Vec<MarkedSpan> {
    let mut marked_spans: Vec<MarkedSpan> = Vec::new();
    let mut marks = marks.iter().copied().peekable();
    let mut position = 0;
    for StyledSpan { style, text } in spans {
        let mut is_span_start = true;
        for c in text.chars() {
            while marks.next_if(|(_, end)| *end <= position).is_some() {}
            let marked = marks.peek().is_some_and(|(start, _)| *start <= position);
            position += 1;
            match marked_spans.last_mut().filter(|last| !is_span_start && last.marked == marked) {
                Some(last) => last.text.push(c),
                None => marked_spans.push(MarkedSpan { style, marked, text: c.to_string() }),
            }
            is_span_start = false;
        }
    }
    marked_spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::log_text::styled_spans;

    fn marked_text(line: &str, marks: &[(u32, u32)]) -> String {
        let describe = |span: MarkedSpan| match (span.style, span.marked) {
            (style, false) if style == TextStyle::default() => span.text,
            (style, true) if style == TextStyle::default() => format!("[{}]", span.text),
            (_, false) => format!("<{}>", span.text),
            (_, true) => format!("<[{}]>", span.text),
        };
        highlight(styled_spans(line), marks).into_iter().map(describe).collect()
    }

    #[test]
    fn marks_cut_spans_and_spans_cut_marks() {
        assert_eq!(marked_text("plain", &[]), "plain");
        assert_eq!(marked_text("aébc", &[(1, 2), (3, 4)]), "a[é]b[c]");
        assert_eq!(marked_text("a\u{1b}[31mbcd\u{1b}[0me", &[(0, 2), (3, 9)]), "[a]<[b]><c><[d]>[e]");
        assert_eq!(marked_text("abc", &[(0, 1), (1, 2)]), "[ab]c");
        assert_eq!(marked_text("", &[(0, 4)]), "");
    }
}
