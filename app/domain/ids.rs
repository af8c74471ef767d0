//! IDs: a type prefix and 26 characters that sort by creation time.
//!
//! IDs are public and never secrets; tokens are created elsewhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Ten random bytes, provided by the caller.
pub type Entropy = [u8; 10];

/// Maximum length of an ID from outside, in bytes.
const MAX_ID_LEN: usize = 64;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                if is_well_formed(&text) { Ok(Self(text)) } else { Err(InvalidId) }
            }
        }

        impl $name {
            /// Creates an ID from the creation time and random bytes.
            pub fn new(now: Timestamp, entropy: Entropy) -> Self {
                Self(format!("{}{}", $prefix, encode_ulid(now, entropy)))
            }

            /// Parses an ID from outside or from the database.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] if it is empty, too long, or contains characters other than letters, digits, `_` and `-`.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                Self::try_from(text.to_owned())
            }

            /// Returns whether a text has the format of a generated ID. Names can contain the same characters.
            pub fn is_generated(text: &str) -> bool {
                text.strip_prefix($prefix).is_some_and(is_ulid)
            }

            /// Returns the ID as text.
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
    /// The ID of a worker, `w_…`.
    WorkerId, "w_"
);
id!(
    /// The ID of a job, `j_…`.
    JobId, "j_"
);
id!(
    /// The ID of a user, `u_…`.
    UserId, "u_"
);
id!(
    /// The ID of an API token, `t_…`, by which it is listed and revoked; not its secret.
    TokenId, "t_"
);
id!(
    /// The ID of a browser session, `s_…`, by which it is listed and ended; not its secret.
    SessionId, "s_"
);
id!(
    /// The ID of a passkey, `p_…`, by which it is listed and removed; not the browser's credential ID.
    PasskeyId, "p_"
);

/// The text is not a valid ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID has 1 to 64 letters, digits, '_' or '-'")
    }
}

impl std::error::Error for InvalidId {}

/// Minimum number of characters for a search by ID.
const MIN_PARTIAL_CHARS: usize = 4;

/// Returns whether a search word, in lower case, matches an ID: its type prefix (`w_` matches any worker), its
/// beginning, or its end, which pages show. The middle is not searched, because a few letters match there by accident.
pub fn matches_partial_id(id: &str, part: &str) -> bool {
    let is_prefix = part.len() > 1 && part.ends_with('_');
    (is_prefix || part.chars().count() >= MIN_PARTIAL_CHARS) && (id.starts_with(part) || id.ends_with(part))
}

/// The number of an attempt of a job, from 1. It only increases; a newer attempt makes all older ones stale (invariant
/// I1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptNumber(pub u32);

impl AttemptNumber {
    /// Returns the number of the next attempt.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn is_well_formed(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_ID_LEN
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Returns the time and random bits of an ID that sorts after the previous one, even within one millisecond.
pub fn next_unique(
    (last, last_entropy): (Timestamp, Entropy),
    now: Timestamp,
    entropy: Entropy,
) -> (Timestamp, Entropy) {
    if now > last {
        return (now, entropy);
    }
    let mut next = last_entropy;
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return (last, next);
        }
    }
    // All values of this millisecond are used up.
    (Timestamp(last.0 + 1), entropy)
}

const CROCKFORD_BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Number of characters after the prefix.
const ULID_LEN: usize = 26;

fn is_ulid(text: &str) -> bool {
    text.len() == ULID_LEN && text.bytes().all(|byte| CROCKFORD_BASE32.contains(&byte))
}

/// 48 bits of milliseconds and 80 random bits in Crockford's base 32, most significant first (the layout of a ULID).
fn encode_ulid(now: Timestamp, entropy: Entropy) -> String {
    let millis = u128::from(now.0.max(0).unsigned_abs()) & 0xffff_ffff_ffff;
    let bits = entropy.iter().fold(millis, |bits, byte| (bits << 8) | u128::from(*byte));
    (0..ULID_LEN).rev().map(|digit| CROCKFORD_BASE32[((bits >> (5 * digit)) & 31) as usize] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_creation_order() {
        let mut last = (Timestamp(5), [255; 10]);
        // Decreasing random numbers, and a clock that stops and is set back.
        for (now, byte) in [(5, 9), (5, 8), (4, 7), (6, 6), (6, 5), (6, 4)] {
            let next = next_unique(last, Timestamp(now), [byte; 10]);
            assert!(JobId::new(next.0, next.1) > JobId::new(last.0, last.1), "{next:?}");
            last = next;
        }
        assert_eq!(
            last,
            (Timestamp(6), [9, 9, 9, 9, 9, 9, 9, 9, 9, 14]),
            "the values of the fifth millisecond are used up"
        );
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
    fn generated_ids_are_distinguished_from_names() {
        let id = WorkerId::new(Timestamp(5), [7; 10]);
        assert!(WorkerId::is_generated(id.as_str()));
        assert!(!JobId::is_generated(id.as_str()), "it has another type");
        for name in [
            "gpu-1",
            "w_",
            "w_frankfurt-rack-12-node-003",
            "w_frankfurt0rack012node0003",
            id.as_str().trim_end_matches('7'),
        ] {
            assert_eq!(WorkerId::is_generated(name), name == id.as_str(), "{name}");
        }
    }

    #[test]
    fn partial_ids_match_at_the_ends() {
        let id = "j_01hn8z0000000000000008as5kf";
        for (part, is_known) in [
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
            assert_eq!(matches_partial_id(id, part), is_known, "{part}");
        }
    }

    #[test]
    fn every_entropy_bit_changes_the_id() {
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
    fn ids_are_displayed_in_full() {
        assert_eq!(AttemptNumber(7).to_string(), "7");
        assert!(!InvalidId.to_string().is_empty());
        let formatted =
            JobId::new(Timestamp(0x0123_4567_89ab), [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff, 0x00]);
        assert_eq!(formatted.as_str(), "j_014d2pf2db04hmasw9nf6yzzr0");
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for bad in ["", "../etc", "a b", "ü", &"x".repeat(65)] {
            assert_eq!(JobId::parse(bad), Err(InvalidId));
        }
        assert_eq!(JobId::parse("j_a-1").map(|id| id.to_string()), Ok("j_a-1".to_owned()));
    }
}
