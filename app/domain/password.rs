//! What a password must be. Its characters follow no rules; length and being hard to guess are what count (NIST SP 800-63B).

/// The shortest, in characters.
pub const SHORTEST: usize = 12;
/// The longest, in bytes.
pub const LONGEST: usize = 1_024;

/// Why a password is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakness {
    /// It has fewer than [`SHORTEST`] characters.
    Short,
    /// It has more than [`LONGEST`] bytes.
    Long,
    /// It is a common password, a pattern, or made of words that are easy to guess.
    Guessable,
    /// It is among the most used of those that breaches have made public.
    Breached,
    /// The operator's list of passwords that must not be used has it.
    Listed,
}

impl Weakness {
    /// Its name in a problem.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
            Self::Guessable => "guessable",
            Self::Breached => "breached",
            Self::Listed => "listed",
        }
    }
}

/// Refuses a password for its length.
pub fn check_length(password: &str) -> Result<(), Weakness> {
    if password.chars().count() < SHORTEST {
        Err(Weakness::Short)
    } else if password.len() > LONGEST {
        Err(Weakness::Long)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters_and_bounded_in_bytes() {
        assert_eq!(check_length(&"é".repeat(11)), Err(Weakness::Short));
        assert_eq!(check_length(&"é".repeat(12)), Ok(()));
        assert_eq!(check_length(&"é".repeat(512)), Ok(()));
        assert_eq!(check_length(&"é".repeat(513)), Err(Weakness::Long));
    }
}
