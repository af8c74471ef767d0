//! Writes text as HTML.

use std::fmt::{Display, Formatter, Result, Write};

/// Escaped text.
pub struct EscapedText<'t>(pub &'t str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            other => f.write_char(other),
        })
    }
}

/// Sentences in which text between backticks is code.
pub struct Prose<'t>(pub &'t str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.split('`').enumerate().try_for_each(|(index, part)| match index % 2 {
            1 => write!(f, "<code>{}</code>", EscapedText(part)),
            _ => EscapedText(part).fmt(f),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(EscapedText("<a href=\"x\">'&").to_string(), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(Prose("take `a<b`, or not").to_string(), "take <code>a&lt;b</code>, or not");
    }
}
