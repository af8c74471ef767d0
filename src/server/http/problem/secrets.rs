//! What is wrong with secrets.

use axum::http::StatusCode;

use super::{ApiError, unavailable};
use crate::vault::Locked;

/// A secret that is not there.
pub fn not_found(name: &str) -> ApiError {
    let detail = format!("There is no secret {name:?} for your jobs. PUT /api/secrets/NAME keeps one.");
    ApiError::new(StatusCode::NOT_FOUND, "secret_not_found", detail)
}

/// A secret that a job names, and that was removed.
pub fn gone(name: &str) -> ApiError {
    let detail = format!("The job names the secret {name:?}, and it was removed. Keep it again, and retry the job.");
    ApiError::new(StatusCode::CONFLICT, "secret_gone", detail)
}

/// A secret that cannot be opened.
pub fn unreadable(name: &str, locked: &Locked) -> ApiError {
    tracing::error!(%name, ?locked, "a secret cannot be opened");
    let detail = format!("The secret {name:?} cannot be read: {}.", why(locked));
    ApiError::new(StatusCode::CONFLICT, "secret_unreadable", detail)
}

/// No secret can be kept.
pub fn no_vault(locked: &Locked) -> ApiError {
    tracing::error!(?locked, "no secret can be kept");
    unavailable("secret_key_unavailable", &format!("No secret can be kept: {}.", why(locked)))
}

/// In words; the path is in the log only.
fn why(locked: &Locked) -> &'static str {
    match locked {
        Locked::NoKey { .. } => {
            "the server's key for secrets cannot be read or made; its log says why, and --secret-key-file names another place"
        }
        Locked::OtherKey { .. } => {
            "it was kept with another key than the server has now; bring that key's file back, or set the secret again"
        }
        Locked::Damaged => "it was changed in the database; set it again",
    }
}
