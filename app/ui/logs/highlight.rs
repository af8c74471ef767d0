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
    let mut found: Vec<MarkedSpan> = Vec::new();
    let mut marks = marks.iter().copied().peekable();
    let mut at = 0;
    for StyledSpan { style, text } in spans {
        let mut begun = true;
        for c in text.chars() {
            while marks.next_if(|(_, end)| *end <= at).is_some() {}
            let marked = marks.peek().is_some_and(|(start, _)| *start <= at);
            at += 1;
            match found.last_mut().filter(|last| !begun && last.marked == marked) {
                Some(last) => last.text.push(c),
                None => found.push(MarkedSpan { style, marked, text: c.to_string() }),
            }
            begun = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::log_text::styled_spans;

    fn shown(line: &str, marks: &[(u32, u32)]) -> String {
        let piece = |piece: MarkedSpan| match (piece.style, piece.marked) {
            (style, false) if style == TextStyle::default() => piece.text,
            (style, true) if style == TextStyle::default() => format!("[{}]", piece.text),
            (_, false) => format!("<{}>", piece.text),
            (_, true) => format!("<[{}]>", piece.text),
        };
        highlight(styled_spans(line), marks).into_iter().map(piece).collect()
    }

    #[test]
    fn marks_cut_spans_and_spans_cut_marks() {
        assert_eq!(shown("plain", &[]), "plain");
        assert_eq!(shown("aébc", &[(1, 2), (3, 4)]), "a[é]b[c]");
        assert_eq!(shown("a\u{1b}[31mbcd\u{1b}[0me", &[(0, 2), (3, 9)]), "[a]<[b]><c><[d]>[e]");
        assert_eq!(shown("abc", &[(0, 1), (1, 2)]), "[ab]c");
        assert_eq!(shown("", &[(0, 4)]), "");
    }
}
