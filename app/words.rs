//! Enums whose variants have a word each: on the wire, in the database, in cookies, in the audit log.

use std::fmt;

use serde::Deserializer;
use serde::de::{self, Visitor};

/// Declares an enum with `ALL`, `as_str` and `parse`. Further derives and attributes are the caller's.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All values, in order.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            /// Returns the value's word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Parses a word.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name)
            }
        }
    };
}

/// Reads one of these words; returns its index. All enums share it, because the code that a derive writes for each of them is
/// a large part of what a browser loads.
pub(crate) fn deserialize_word<'de, D: Deserializer<'de>>(
    deserializer: D,
    words: &'static [&'static str],
) -> Result<usize, D::Error> {
    deserializer.deserialize_str(WordVisitor(words))
}

struct WordVisitor(&'static [&'static str]);

impl Visitor<'_> for WordVisitor {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of: {}", self.0.join(", "))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<usize, E> {
        let found = self.0.iter().position(|known| *known == word);
        found.ok_or_else(|| E::unknown_variant(word, self.0))
    }
}

/// Declares words that travel as JSON.
macro_rules! wire_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $crate::words::words! {
            $(#[$meta])*
            #[derive(PartialOrd, Ord, Hash, serde::Serialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant = $word,)+ }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::words::deserialize_word(deserializer, &[$($word),+]).map(|index| Self::ALL[index])
            }
        }
    };
}

pub(crate) use wire_words;
pub(crate) use words;
