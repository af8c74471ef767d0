//! Sentences: plain text, text with placeholders, or text that depends on a number.

use std::fmt::Display;

use super::plurals;
use crate::ui::prefs::Locale;

/// A sentence.
pub(crate) type Text = &'static str;

/// A sentence with placeholders: `{0}`, `{1}` and so on, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phrase(Text);

impl Phrase {
    /// The sentence with this value as `{0}`.
    pub fn of(self, value: impl Display) -> String {
        fill(self.0, &[&value.to_string()])
    }

    /// The sentence with several values.
    pub fn with(self, values: &[&dyn Display]) -> String {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        fill(self.0, &values.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// A sentence about a number, which is `{0}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    locale: Locale,
    /// In the order of [`super::words::FORMS`], with tabs between them. An empty form is the same as the first.
    forms: Text,
}

impl Count {
    /// The sentence for this number.
    pub fn of(self, count: u64) -> String {
        self.with(count, "")
    }

    /// The sentence for this number, with another value as `{1}`.
    pub fn with(self, count: u64, value: &str) -> String {
        self.about(count, &self.locale.integer(count), value)
    }

    /// The sentence in the form for this number, with these values as `{0}` and `{1}`.
    pub fn about(self, count: u64, number: &str, value: &str) -> String {
        let mut forms = self.forms.split('\t');
        let first = forms.next().unwrap_or_default();
        let index = plurals::form(self.locale, count);
        let form = index.checked_sub(1).and_then(|index| forms.nth(index)).filter(|form| !form.is_empty());
        fill(form.unwrap_or(first), &[number, value])
    }
}

/// Replaces `{0}`, `{1}` and so on.
pub(crate) fn fill(pattern: &str, values: &[&str]) -> String {
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (index, after_placeholder) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(index.parse().ok().and_then(|index: usize| values.get(index)).copied().unwrap_or_default());
        rest = after_placeholder;
    }
    text.push_str(rest);
    text
}

/// The sentences of a language, one a line, in the order in which the structs of [`super::words`] read them.
pub(crate) struct List {
    locale: Locale,
    lines: std::str::Split<'static, char>,
}

impl List {
    pub fn new(locale: Locale, lines: &'static str) -> Self {
        Self { locale, lines: lines.split('\n') }
    }

    #[inline(never)] // otherwise its code would be repeated at hundreds of calls
    pub fn text(&mut self) -> Text {
        self.lines.next().unwrap_or_default()
    }

    pub fn phrase(&mut self) -> Phrase {
        Phrase(self.text())
    }

    pub fn count(&mut self) -> Count {
        Count { locale: self.locale, forms: self.text() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_any_order() {
        assert_eq!(Phrase("{1} of {0}").with(&[&"a", &2]), "2 of a");
        assert_eq!(Phrase("{0}, {0}").of("x"), "x, x");
        // Values are inserted unchanged, and a missing value leaves nothing.
        assert_eq!(Phrase("<{0}>").of("{1}"), "<{1}>");
        assert_eq!(Phrase("{1}{x").of("a"), "");
    }

    #[test]
    fn plural_form_matches_the_number() {
        let about = |locale, forms| {
            let sentence = Count { locale, forms };
            [0, 1, 2, 1_000_000].map(|count| sentence.with(count, "a"))
        };
        assert_eq!(
            about(Locale::En, "{0} jobs of {1}\tone job"),
            ["0 jobs of a", "one job", "2 jobs of a", "1,000,000 jobs of a"]
        );
        assert_eq!(about(Locale::Es, "{0} x\t{0} y\t{0} de x"), ["0 x", "1 y", "2 x", "1.000.000 de x"]);
        assert_eq!(about(Locale::Pt, "{0} x\t\t{0} de x"), ["0 x", "1 x", "2 x", "1.000.000 de x"]);
        assert_eq!(about(Locale::Ja, "{0}"), ["0", "1", "2", "1,000,000"]);
    }
}
