//! How the process ends: sysexits where they apply, so that a service manager can tell what a restart would help.

use std::fmt;

use app::remote::TrustError;

/// All went well.
pub const OK: u8 = 0;
/// Something else went wrong.
pub const ERROR: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// The orchestrator could not be reached for too long.
pub const UNAVAILABLE: u8 = 69;
/// The token was refused: a restart does not help.
pub const REFUSED: u8 = 77;
/// Configuration or host are not usable: a restart does not help.
pub const CONFIG: u8 = 78;

/// The agent begins anew in the same process, which never ends with this.
pub const AGAIN: u8 = 255;

/// Why the process cannot go on: an exit code, and a sentence that says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatal {
    /// The exit code.
    pub code: u8,
    /// For the person who started it.
    pub sentence: String,
}

impl Fatal {
    /// The command line is wrong.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { code: USAGE, sentence: sentence.into() }
    }

    /// Configuration or host are not usable.
    pub fn config(sentence: impl Into<String>) -> Self {
        Self { code: CONFIG, sentence: sentence.into() }
    }

    /// Something else.
    pub fn error(sentence: impl Into<String>) -> Self {
        Self { code: ERROR, sentence: sentence.into() }
    }
}

impl From<TrustError> for Fatal {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Usage(sentence) => Self::usage(sentence),
            TrustError::Unusable(sentence) => Self::config(sentence),
        }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Fatal {}
