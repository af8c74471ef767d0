//! Identifiers: a type prefix and 26 characters that sort by creation time.
//!
//! Ids are public and never secrets; tokens are made elsewhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Ten random bytes, drawn by the caller.
pub type Entropy = [u8; 10];

/// The longest id that is accepted from outside, in bytes.
const MAX_LEN: usize = 64;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                if is_well_formed(&text) { Ok(Self(text)) } else { Err(BadId) }
            }
        }

        impl $name {
            /// Makes a new id from the time of creation and randomness of the caller's.
            pub fn new(now: Timestamp, entropy: Entropy) -> Self {
                Self(format!("{}{}", $prefix, sortable(now, entropy)))
            }

            /// Takes an id as it came from outside or from the database.
            ///
            /// # Errors
            /// [`BadId`] if it is empty, too long, or has other characters than letters, digits, `_` and `-`.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                Self::try_from(text.to_owned())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A worker: one agent's place in the fleet, `w_…`.
    WorkerId, "w_"
);
id!(
    /// A job: one submitted training run with all its attempts, `j_…`.
    JobId, "j_"
);
id!(
    /// A person, `u_…`.
    UserId, "u_"
);
id!(
    /// An API token, by which it is listed and revoked; not its secret, `t_…`.
    TokenId, "t_"
);
id!(
    /// A browser's session, by which it is listed and ended; not its secret, `s_…`.
    SessionId, "s_"
);
id!(
    /// A passkey, by which it is listed and removed; not what the browser calls it, `p_…`.
    PasskeyId, "p_"
);

/// Text that is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadId;

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id has 1 to 64 letters, digits, '_' or '-'")
    }
}

impl std::error::Error for BadId {}

/// The fewest characters by which an id is looked for.
const FEWEST: usize = 4;

/// Whether a word, in small letters, is one that people know an id by: its prefix (`w_` is any worker), its beginning, or its
/// end, which pages show of it. In the middle of one any few letters are found, which means nothing.
pub fn is_known_by(id: &str, word: &str) -> bool {
    let is_prefix = word.len() > 1 && word.ends_with('_');
    (is_prefix || word.chars().count() >= FEWEST) && (id.starts_with(word) || id.ends_with(word))
}

/// The number of an attempt at a job, from 1. It only grows, and fences out every older attempt (invariant I1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_well_formed(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_LEN
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// 48 bits of milliseconds and 80 random bits in Crockford's base 32, most significant first (the layout of a ULID).
/// The time and randomness of an id that sorts after the one made before, also within a millisecond.
pub fn following((last, drawn): (Timestamp, Entropy), now: Timestamp, entropy: Entropy) -> (Timestamp, Entropy) {
    if now > last {
        return (now, entropy);
    }
    let mut next = drawn;
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return (last, next);
        }
    }
    // All of this millisecond's are used.
    (Timestamp(last.0 + 1), entropy)
}

fn sortable(now: Timestamp, entropy: Entropy) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let millis = u128::from(now.0.max(0).unsigned_abs()) & 0xffff_ffff_ffff;
    let bits = entropy.iter().fold(millis, |bits, byte| (bits << 8) | u128::from(*byte));
    (0..26).rev().map(|place| ALPHABET[((bits >> (5 * place)) & 31) as usize] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_the_order_in_which_they_are_made() {
        let mut last = (Timestamp(5), [255; 10]);
        // Random numbers that fall, and a clock that stands still and goes back.
        for (now, drawn) in [(5, 9), (5, 8), (4, 7), (6, 6), (6, 5), (6, 4)] {
            let next = following(last, Timestamp(now), [drawn; 10]);
            assert!(JobId::new(next.0, next.1) > JobId::new(last.0, last.1), "{next:?}");
            last = next;
        }
        assert_eq!(last, (Timestamp(6), [9, 9, 9, 9, 9, 9, 9, 9, 9, 14]), "the fifth millisecond's were used up");
    }

    #[test]
    fn ids_sort_by_time_and_carry_their_prefix() {
        let early = JobId::new(Timestamp(1_000), [255; 10]);
        let late = JobId::new(Timestamp(1_001), [0; 10]);
        assert!(early < late);
        assert!(early.as_str().starts_with("j_"));
        assert_eq!(early.as_str().len(), 28);
    }

    #[test]
    fn an_id_is_known_by_its_ends() {
        let id = "j_01hn8z0000000000000008as5kf";
        for (word, is_known) in [
            (id, true),
            ("j_01hn", true),
            ("8as5kf", true),
            ("5kf", false),
            ("j_", true),
            ("w_", false),
            ("_", false),
            ("j", false),
            ("", false),
            ("hn8z", false),
        ] {
            assert_eq!(is_known_by(id, word), is_known, "{word}");
        }
    }

    #[test]
    fn every_bit_of_the_entropy_counts() {
        let base = WorkerId::new(Timestamp(5), [0; 10]);
        for byte in 0..10 {
            for bit in 0..8 {
                let mut entropy = [0; 10];
                entropy[byte] = 1 << bit;
                assert_ne!(WorkerId::new(Timestamp(5), entropy), base);
            }
        }
    }

    #[test]
    fn what_is_shown_of_ids() {
        assert_eq!(Attempt(7).to_string(), "7");
        assert!(!BadId.to_string().is_empty());
        let whole =
            JobId::new(Timestamp(0x0123_4567_89ab), [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff, 0x00]);
        assert_eq!(whole.as_str(), "j_014d2pf2db04hmasw9nf6yzzr0");
    }

    #[test]
    fn foreign_text_is_refused() {
        for bad in ["", "../etc", "a b", "ü", &"x".repeat(65)] {
            assert_eq!(JobId::parse(bad), Err(BadId));
        }
        assert_eq!(JobId::parse("j_a-1").map(|id| id.to_string()), Ok("j_a-1".to_owned()));
    }
}
