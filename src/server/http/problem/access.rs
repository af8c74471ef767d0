//! Problems of authentication and authorization.

use app::domain::access::{Permission, Role};
use app::domain::passkey::PasskeyOriginError;
use axum::http::StatusCode;

use super::{ApiError, Sentence, escaped};
use crate::service::error::{FactorError, ServiceError};

/// Returns the problem of an access error.
pub fn access_problem(service_error: &ServiceError) -> ApiError {
    use StatusCode as S;
    let (status, sentence) = match service_error {
        ServiceError::PermissionDenied(permission) => return permission_denied(*permission),
        ServiceError::WrongToken => (S::UNAUTHORIZED, Sentence::WrongToken),
        ServiceError::Factor(error) => return factor_problem(*error),
        ServiceError::RecentAuthRequired => (S::FORBIDDEN, Sentence::PasswordNeeded),
        ServiceError::UserNotFound(id) => (S::NOT_FOUND, Sentence::UserNotFound { id: id.to_string() }),
        ServiceError::TokenNotFound(id) => (S::NOT_FOUND, Sentence::TokenNotFound { id: id.to_string() }),
        ServiceError::SessionNotFound(id) => (S::NOT_FOUND, Sentence::SessionNotFound { id: id.to_string() }),
        ServiceError::UserExists(name) => (S::CONFLICT, Sentence::NameTakenUser { name: escaped(name) }),
        ServiceError::TokenExists(name) => (S::CONFLICT, Sentence::NameTakenToken { name: escaped(name) }),
        ServiceError::LastAdmin => (S::CONFLICT, Sentence::LastAdmin),
        ServiceError::NoAccounts => (S::CONFLICT, Sentence::NoAccounts),
        ServiceError::NoAccount => (S::CONFLICT, Sentence::UserRequired),
        _ => (S::UNAUTHORIZED, Sentence::WrongPassword),
    };
    ApiError::new(status, sentence)
}

/// A permission is missing; the sentence names the roles that have it.
fn permission_denied(permission: Permission) -> ApiError {
    let roles = Role::ALL.into_iter().filter(|role| role.permissions().contains(permission)).map(Role::as_str);
    let roles = roles.collect::<Vec<_>>().join(", ");
    let sentence = Sentence::PermissionDenied { permission: permission.as_str().to_owned(), roles };
    ApiError::new(StatusCode::FORBIDDEN, sentence).with("permission", permission.as_str())
}

/// Returns the problem of a second factor.
fn factor_problem(error: FactorError) -> ApiError {
    use StatusCode as S;
    let (status, sentence) = match error {
        FactorError::WrongCode => (S::UNPROCESSABLE_ENTITY, Sentence::WrongCode),
        FactorError::NoEnrollment => (S::NOT_FOUND, Sentence::EnrollmentNotStarted),
        FactorError::AlreadyExists => (S::CONFLICT, Sentence::FactorExists),
        FactorError::Required => (S::FORBIDDEN, Sentence::FactorNeeded),
        FactorError::PasskeysUnavailable(why) => return passkeys_unavailable(why),
        FactorError::PasskeyExpired => (S::CONFLICT, Sentence::PasskeyExpired),
        FactorError::WrongPasskey => (S::UNPROCESSABLE_ENTITY, Sentence::WrongPasskey),
        FactorError::PasskeyCopied => (S::UNPROCESSABLE_ENTITY, Sentence::PasskeyCopied),
        FactorError::PasskeyExists => (S::CONFLICT, Sentence::PasskeyExists),
        FactorError::PasskeyNotFound => (S::NOT_FOUND, Sentence::PasskeyNotFound),
        FactorError::NotFound => (S::NOT_FOUND, Sentence::FactorNotFound),
        FactorError::NoPasswordSession => (S::CONFLICT, Sentence::NoPasswordSession),
    };
    ApiError::new(status, sentence)
}

/// Passkeys are not available at this address.
fn passkeys_unavailable(why: PasskeyOriginError) -> ApiError {
    let sentence = match why {
        PasskeyOriginError::Insecure => Sentence::PasskeysUnavailableInsecure,
        PasskeyOriginError::NoHostName => Sentence::PasskeysUnavailableNoName,
    };
    ApiError::new(StatusCode::CONFLICT, sentence).with("why", why.as_str())
}
