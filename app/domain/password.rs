//! Password rules. There are no composition rules; length and resistance to guessing count (NIST SP 800-63B).

/// Minimum length, in characters.
pub const MIN_CHARS: usize = 12;
/// Maximum length, in bytes.
pub const MAX_BYTES: usize = 1_024;

/// Why a password is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordWeakness {
    /// Fewer than [`MIN_CHARS`] characters.
    TooShort,
    /// More than [`MAX_BYTES`] bytes.
    TooLong,
    /// A common password, a pattern, or a combination of words that is easy to guess.
    Guessable,
    /// One of the most common passwords of known breaches.
    Breached,
    /// Contained in the operator's list of forbidden passwords.
    Listed,
}

impl PasswordWeakness {
    /// Returns its name in problems.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooShort => "short",
            Self::TooLong => "long",
            Self::Guessable => "guessable",
            Self::Breached => "breached",
            Self::Listed => "listed",
        }
    }
}

/// Validates the length.
pub fn check_length(password: &str) -> Result<(), PasswordWeakness> {
    if password.chars().count() < MIN_CHARS {
        Err(PasswordWeakness::TooShort)
    } else if password.len() > MAX_BYTES {
        Err(PasswordWeakness::TooLong)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_checked_in_characters_and_bytes() {
        assert_eq!(check_length(&"é".repeat(11)), Err(PasswordWeakness::TooShort));
        assert_eq!(check_length(&"é".repeat(12)), Ok(()));
        assert_eq!(check_length(&"é".repeat(512)), Ok(()));
        assert_eq!(check_length(&"é".repeat(513)), Err(PasswordWeakness::TooLong));
    }
}
