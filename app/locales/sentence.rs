//! What a sentence is: text, text with places for what is told, or text about a number.
//!
//! A language is data. So the server holds all of them, and a page carries only its own (see [`super::Language`]).

use std::fmt::Display;

use crate::ui::prefs::Locale;

/// A sentence.
pub(crate) type Text = &'static str;

/// A sentence with places: `{0}`, `{1}` and so on, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phrase(pub Text);

impl Phrase {
    /// The sentence about one thing.
    pub fn of(self, thing: impl Display) -> String {
        fill(self.0, &[&thing.to_string()])
    }

    /// The sentence about several.
    pub fn with(self, things: &[&dyn Display]) -> String {
        let things: Vec<_> = things.iter().map(ToString::to_string).collect();
        fill(self.0, &things.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// A sentence about a number, which is `{0}`. Of the forms that the six languages have, whole numbers need two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    locale: Locale,
    one: Text,
    other: Text,
}

impl Count {
    /// Both forms; a language without the first leaves it empty.
    #[cfg(feature = "ssr")]
    pub const fn new(locale: Locale, one: Text, other: Text) -> Self {
        Self { locale, one, other }
    }

    /// The sentence about so many.
    pub fn of(self, count: u64) -> String {
        self.with(count, "")
    }

    /// The sentence about so many, and something else, which is `{1}`.
    pub fn with(self, count: u64, thing: &str) -> String {
        self.about(count, &self.locale.whole(count), thing)
    }

    /// The sentence about so many, who are called so, which is `{0}`, and something else, which is `{1}`.
    pub fn about(self, count: u64, who: &str, thing: &str) -> String {
        let form = if self.locale.takes_first_form(count) { self.one } else { self.other };
        fill(form, &[who, thing])
    }
}

fn fill(pattern: &str, things: &[&str]) -> String {
    let mut text = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (place, behind) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(place.parse().ok().and_then(|place: usize| things.get(place)).copied().unwrap_or_default());
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// Sentences that travel from the server to the page, as a list in the order of their declaration.
pub(crate) trait Sentences: Sized {
    /// Appends them.
    #[cfg(feature = "ssr")]
    fn write(&self, list: &mut Vec<Text>);
    /// Takes them again.
    #[cfg(any(feature = "hydrate", test))]
    fn read(list: &mut List) -> Self;
}

/// Sentences on their way into a page.
#[cfg(any(feature = "hydrate", test))]
pub(crate) struct List<'a> {
    pub locale: Locale,
    pub lines: std::str::Split<'a, char>,
}

impl Sentences for Text {
    #[cfg(feature = "ssr")]
    fn write(&self, list: &mut Vec<Text>) {
        list.push(self);
    }

    /// They live as long as the page.
    #[inline(never)] // or each of hundreds of places would hold all of it
    #[cfg(any(feature = "hydrate", test))]
    fn read(list: &mut List) -> Self {
        list.lines.next().unwrap_or_default().to_owned().leak()
    }
}

impl Sentences for Phrase {
    #[cfg(feature = "ssr")]
    fn write(&self, list: &mut Vec<Text>) {
        self.0.write(list);
    }

    #[cfg(any(feature = "hydrate", test))]
    fn read(list: &mut List) -> Self {
        Self(Text::read(list))
    }
}

impl Sentences for Count {
    #[cfg(feature = "ssr")]
    fn write(&self, list: &mut Vec<Text>) {
        self.one.write(list);
        self.other.write(list);
    }

    #[cfg(any(feature = "hydrate", test))]
    fn read(list: &mut List) -> Self {
        Self { locale: list.locale, one: Text::read(list), other: Text::read(list) }
    }
}

impl<const N: usize> Sentences for [Text; N] {
    #[cfg(feature = "ssr")]
    fn write(&self, list: &mut Vec<Text>) {
        list.extend(self);
    }

    #[cfg(any(feature = "hydrate", test))]
    fn read(list: &mut List) -> Self {
        std::array::from_fn(|_| Text::read(list))
    }
}

/// Declares groups of sentences. A language that leaves one out does not compile.
macro_rules! words {
    ($($(#[$meta:meta])* $vis:vis $group:ident { $($field:ident: $kind:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $group { $(pub $field: $kind,)* }

        impl $crate::ui::locales::sentence::Sentences for $group {
            #[cfg(feature = "ssr")]
            fn write(&self, list: &mut Vec<&'static str>) {
                $($crate::ui::locales::sentence::Sentences::write(&self.$field, list);)*
            }

            #[cfg(any(feature = "hydrate", test))]
            fn read(list: &mut $crate::ui::locales::sentence::List) -> Self {
                Self { $($field: <$kind as $crate::ui::locales::sentence::Sentences>::read(list),)* }
            }
        }
    )*};
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_any_order() {
        assert_eq!(Phrase("{1} of {0}").with(&[&"a", &2]), "2 of a");
        assert_eq!(Phrase("{0}, {0}").of("x"), "x, x");
        // What is told is told as it is, and what is not told leaves nothing.
        assert_eq!(Phrase("<{0}>").of("{1}"), "<{1}>");
        assert_eq!(Phrase("{1}{x").of("a"), "");
    }
}
