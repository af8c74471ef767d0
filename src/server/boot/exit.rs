//! Why the server could not start or go on: one sentence and an exit code (`sysexits.h`).

use std::process::ExitCode;

use crate::service::refusal::Refusal;

/// See the module.
#[derive(Debug)]
pub struct Exit {
    code: u8,
    sentence: String,
}

impl Exit {
    /// Anything unforeseen: 1.
    pub fn failed(sentence: String) -> Self {
        Self { code: 1, sentence }
    }

    /// Flags that do not go together: 2.
    pub fn usage(sentence: String) -> Self {
        Self { code: 2, sentence }
    }

    /// An address that cannot be had: 69.
    pub fn unavailable(sentence: String) -> Self {
        Self { code: 69, sentence }
    }

    /// A directory, file or setting that cannot be used: 78.
    pub fn config(sentence: String) -> Self {
        Self { code: 78, sentence }
    }

    /// What was looked at is not as it should be: 65. It was said already, and is no failure of the program.
    pub fn tampered() -> ExitCode {
        ExitCode::from(65)
    }

    /// A use case that failed at start.
    pub fn refused(refusal: Refusal) -> Self {
        Self::failed(crate::http::problem::ApiError::from(refusal).problem().detail)
    }

    /// The sentence.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Says it.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.sentence);
        ExitCode::from(self.code)
    }
}
