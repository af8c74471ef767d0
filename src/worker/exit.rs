//! Exit codes of the process: sysexits where they apply, so that a service manager knows whether a restart helps.

use std::fmt;

use app::remote::ServerTrustError;

pub const OK: u8 = 0;
/// Unexpected error.
pub const ERROR: u8 = 1;
pub const USAGE: u8 = 2;
/// The orchestrator could not be reached for too long.
pub const UNAVAILABLE: u8 = 69;
/// The token was rejected: a restart does not help.
pub const TOKEN_REJECTED: u8 = 77;
/// The configuration or the host cannot be used: a restart does not help.
pub const CONFIG: u8 = 78;

/// The agent restarts in the same process, which never exits with this code.
pub const RESTART: u8 = 255;

/// Why the process exits: an exit code, and a message that says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatalError {
    pub code: u8,
    /// For the user.
    pub sentence: String,
}

impl FatalError {
    /// Creates an error of the command line.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { code: USAGE, sentence: sentence.into() }
    }

    /// Creates an error of the configuration or the host.
    pub fn config(sentence: impl Into<String>) -> Self {
        Self { code: CONFIG, sentence: sentence.into() }
    }

    /// Creates any other error.
    pub fn error(sentence: impl Into<String>) -> Self {
        Self { code: ERROR, sentence: sentence.into() }
    }
}

impl From<ServerTrustError> for FatalError {
    fn from(error: ServerTrustError) -> Self {
        match error {
            ServerTrustError::Usage(sentence) => Self::usage(sentence),
            ServerTrustError::Unusable(sentence) => Self::config(sentence),
        }
    }
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for FatalError {}
