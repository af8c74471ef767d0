//! Text as HTML.

use std::fmt::{Display, Formatter, Result, Write};

/// Text that is shown as it is.
pub struct Text<'t>(pub &'t str);

impl Display for Text<'_> {
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

/// Sentences in which what stands between backticks is code.
pub struct Prose<'t>(pub &'t str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.split('`').enumerate().try_for_each(|(at, part)| match at % 2 {
            1 => write!(f, "<code>{}</code>", Text(part)),
            _ => Text(part).fmt(f),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(Text("<a href=\"x\">'&").to_string(), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(Prose("take `a<b`, or not").to_string(), "take <code>a&lt;b</code>, or not");
    }
}
