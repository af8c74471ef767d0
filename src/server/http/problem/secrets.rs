//! Problems of secrets.

use axum::http::StatusCode;

use super::{ApiError, service_unavailable};
use crate::vault::VaultError;

/// There is no such secret.
pub fn secret_not_found(name: &str) -> ApiError {
    let detail = format!("Your jobs have no secret {name:?}. PUT /api/secrets/NAME stores one.");
    ApiError::new(StatusCode::NOT_FOUND, "secret_not_found", detail)
}

/// A secret of the job has been deleted.
pub fn secret_removed(name: &str) -> ApiError {
    let detail = format!("The job names the secret {name:?}, which was deleted. Store it again, and retry the job.");
    ApiError::new(StatusCode::CONFLICT, "secret_deleted", detail)
}

/// A secret cannot be decrypted.
pub fn secret_unreadable(name: &str, error: &VaultError) -> ApiError {
    tracing::error!(%name, ?error, "secrets: failed to decrypt");
    let detail = format!("The secret {name:?} cannot be read: {}.", describe_cause(error));
    ApiError::new(StatusCode::CONFLICT, "secret_unreadable", detail)
}

/// The encryption key for secrets is unavailable.
pub fn secret_key_unavailable(error: &VaultError) -> ApiError {
    tracing::error!(?error, "secrets: encryption key unavailable");
    service_unavailable("secret_key_unavailable", &format!("Secrets cannot be stored: {}.", describe_cause(error)))
}

/// Describes the cause; the path is only logged.
fn describe_cause(error: &VaultError) -> &'static str {
    match error {
        VaultError::NoKey { .. } => {
            "the server cannot read or create its encryption key for secrets; its log has the reason, and --secret-key-file sets another path"
        }
        VaultError::OtherKey { .. } => {
            "it was stored with a different key than the server has now; restore that key file, or set the secret again"
        }
        VaultError::Corrupt => "it was changed in the database; set it again",
    }
}
