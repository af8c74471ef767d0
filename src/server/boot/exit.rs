//! Why the server, or a command beside it, could not start or go on: one sentence and an exit code (`sysexits.h`).

use std::io::{self, ErrorKind, Write};
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

    /// What may go well another time: 75.
    pub fn try_again(sentence: String) -> Self {
        Self { code: 75, sentence }
    }

    /// Whoever asks may not: 77.
    pub fn denied(sentence: String) -> Self {
        Self { code: 77, sentence }
    }

    /// Ctrl-C: 130. It needs no words.
    pub fn interrupted() -> Self {
        Self { code: 130, sentence: String::new() }
    }

    /// All was said already.
    pub fn silent(code: u8) -> Self {
        Self { code, sentence: String::new() }
    }

    /// A directory, file or setting that cannot be used: 78.
    pub fn config(sentence: String) -> Self {
        Self { code: 78, sentence }
    }

    /// An audit trail that was tampered with: 65.
    pub fn tampered(sentence: String) -> Self {
        Self { code: 65, sentence }
    }

    /// A use case that failed at start.
    pub fn refused(refusal: Refusal) -> Self {
        Self::failed(crate::http::problem::ApiError::from(refusal).problem().detail)
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Why, in words.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Says it.
    pub fn report(&self) -> ExitCode {
        if !self.sentence.is_empty() {
            // Whoever closed stderr does not want to know.
            let _ = writeln!(io::stderr(), "error: {}", self.sentence);
        }
        ExitCode::from(self.code)
    }
}

/// What could not be printed. A reader who left (`| head`) has seen enough, and all is well.
impl From<io::Error> for Exit {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::silent(0),
            _ => Self::failed(format!("it could not be printed: {error}")),
        }
    }
}
