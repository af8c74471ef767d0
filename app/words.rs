//! Enums whose variants have a word each: on the wire, in the database, in cookies, in the audit log.

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

/// Declares words that travel as JSON.
macro_rules! wire_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $crate::words::words! {
            $(#[$meta])*
            #[derive(PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant = $word,)+ }
        }
    };
}

pub(crate) use wire_words;
pub(crate) use words;
