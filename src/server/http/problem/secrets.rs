//! Problems of secrets.

use axum::http::StatusCode;

use super::{ApiError, Sentence, escaped, service_unavailable};
use crate::vault::VaultError;

/// There is no such secret.
pub fn secret_not_found(name: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, Sentence::SecretNotFound { name: escaped(name) })
}

/// A secret of the job has been deleted.
pub fn secret_removed(name: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, Sentence::SecretDeleted { name: escaped(name) })
}

/// A secret cannot be decrypted. The path of the key is only logged.
pub fn secret_unreadable(name: &str, error: &VaultError) -> ApiError {
    tracing::error!(%name, ?error, "secrets: failed to decrypt");
    let name = escaped(name);
    let sentence = match error {
        VaultError::NoKey { .. } => Sentence::SecretUnreadableNoKey { name },
        VaultError::OtherKey { .. } => Sentence::SecretUnreadableWrongKey { name },
        VaultError::Corrupt => Sentence::SecretUnreadableCorrupt { name },
    };
    ApiError::new(StatusCode::CONFLICT, sentence)
}

/// The encryption key for secrets is unavailable: encrypting fails for no other reason.
pub fn secret_key_unavailable(error: &VaultError) -> ApiError {
    tracing::error!(?error, "secrets: encryption key unavailable");
    service_unavailable(Sentence::SecretKeyUnavailable)
}
