//! Errors that end the server or a command: a message and an exit code (`sysexits.h`).

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use app::ui::prefs::Locale;

use crate::http::problem::ApiError;
use crate::service::error::ServiceError;

#[derive(Debug)]
pub struct ExitError {
    code: u8,
    message: String,
}

impl ExitError {
    /// Any unexpected error: 1.
    pub fn failed(message: String) -> Self {
        Self { code: 1, message }
    }

    /// Incompatible flags: 2.
    pub fn usage(message: String) -> Self {
        Self { code: 2, message }
    }

    /// The address is unavailable: 69.
    pub fn unavailable(message: String) -> Self {
        Self { code: 69, message }
    }

    /// A temporary failure: 75.
    pub fn temp_failure(message: String) -> Self {
        Self { code: 75, message }
    }

    /// Permission denied: 77.
    pub fn no_permission(message: String) -> Self {
        Self { code: 77, message }
    }

    /// Ctrl-C: 130, without a message.
    pub fn interrupted() -> Self {
        Self { code: 130, message: String::new() }
    }

    /// An exit code without a message: everything has been printed.
    pub fn silent(code: u8) -> Self {
        Self { code, message: String::new() }
    }

    /// An unusable directory, file or setting: 78.
    pub fn config(message: String) -> Self {
        Self { code: 78, message }
    }

    /// A manipulated audit log: 65.
    pub fn data_error(message: String) -> Self {
        Self { code: 65, message }
    }

    /// A use case failed at startup.
    pub fn from_service_error(error: ServiceError) -> Self {
        Self::failed(ApiError::from(error).to_problem(Locale::En).detail)
    }

    pub fn code(&self) -> u8 {
        self.code
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn print(&self) -> ExitCode {
        if !self.message.is_empty() {
            // Stderr may be closed.
            let _ = writeln!(io::stderr(), "error: {}", self.message);
        }
        ExitCode::from(self.code)
    }
}

/// Output that could not be printed. A closed pipe (`| head`) is no error.
impl From<io::Error> for ExitError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::silent(0),
            _ => Self::failed(format!("cannot write the output: {error}")),
        }
    }
}
