//! Problems of authentication and authorization.

use app::domain::passkey::PasskeyOriginError;
use axum::http::StatusCode;

use super::ApiError;
use crate::service::error::{FactorError, ServiceError};

/// Returns the problem of an access error.
pub fn access_problem(service_error: &ServiceError) -> ApiError {
    use StatusCode as S;
    let (status, code, detail) = match service_error {
        ServiceError::PermissionDenied(permission) => (
            S::FORBIDDEN,
            "permission_denied",
            format!(
                "This requires the permission `{}`. Ask an admin for a role that has it, or use a token with this scope.",
                permission.as_str()
            ),
        ),
        ServiceError::WrongToken => (
            S::UNAUTHORIZED,
            "wrong_token",
            "Invalid token or code. Check it for typing errors.".to_owned(),
        ),
        ServiceError::Factor(error) => return factor_problem(*error),
        ServiceError::RecentAuthRequired => (
            S::FORBIDDEN,
            "password_needed",
            "This requires your password again: confirm it at /confirm (or POST /api/session/proof), then repeat the request."
                .to_owned(),
        ),
        ServiceError::UserNotFound(id) => (S::NOT_FOUND, "user_not_found", format!("User {id} not found.")),
        ServiceError::TokenNotFound(id) => {
            (S::NOT_FOUND, "token_not_found", format!("You have no API token {id}."))
        }
        ServiceError::SessionNotFound(id) => {
            (S::NOT_FOUND, "session_not_found", format!("You have no session {id}."))
        }
        ServiceError::UserExists(name) => {
            (S::CONFLICT, "name_taken", format!("A user named {name:?} exists already. Choose another name."))
        }
        ServiceError::TokenExists(name) => (
            S::CONFLICT,
            "name_taken",
            format!("You have a token named {name:?} already. Choose another name, or revoke that one first."),
        ),
        ServiceError::LastAdmin => (
            S::CONFLICT,
            "last_admin",
            "This is the last active admin. Give another user the role admin first.".to_owned(),
        ),
        ServiceError::NoAccounts => (
            S::CONFLICT,
            "no_accounts",
            "This server runs without accounts (--single-user). Start it without that option for users and tokens."
                .to_owned(),
        ),
        ServiceError::NoAccount => (
            S::CONFLICT,
            "user_required",
            "The operator on the server's host has no account, and so no password, tokens or sessions. Name a user."
                .to_owned(),
        ),
        _ => (
            S::UNAUTHORIZED,
            "wrong_password",
            "Incorrect user name or password. Check both for typing errors.".to_owned(),
        ),
    };
    let mut error = ApiError::new(status, code, detail);
    if let ServiceError::PermissionDenied(permission) = service_error {
        error.extra.insert("permission".to_owned(), permission.as_str().into());
    }
    error
}

/// Returns the problem of a second factor.
fn factor_problem(error: FactorError) -> ApiError {
    use StatusCode as S;
    let (status, code, detail) = match error {
        FactorError::WrongCode => (
            S::UNPROCESSABLE_ENTITY,
            "wrong_code",
            "This code is not valid. Enter the current code of your authenticator app, each code once, or a recovery code \
             that you have not used.",
        ),
        FactorError::NoEnrollment => (
            S::NOT_FOUND,
            "enrollment_not_started",
            "No authenticator app is being set up. Start again on the account page.",
        ),
        FactorError::AlreadyExists => (
            S::CONFLICT,
            "factor_exists",
            "An authenticator app is set up already. Remove it first to set up another one.",
        ),
        FactorError::Required => (
            S::FORBIDDEN,
            "factor_needed",
            "The second factor is required in addition to the password: a code of your app, a recovery code, or a passkey on the page \
             /confirm.",
        ),
        FactorError::PasskeysUnavailable(why) => return passkeys_unavailable(why),
        FactorError::PasskeyExpired => (
            S::CONFLICT,
            "passkey_expired",
            "The passkey request has expired: it is valid for ten minutes and one response. Try again.",
        ),
        FactorError::WrongPasskey => (
            S::UNPROCESSABLE_ENTITY,
            "wrong_passkey",
            "This passkey was not accepted. Use one of those that are listed on the account page.",
        ),
        FactorError::PasskeyCopied => (
            S::UNPROCESSABLE_ENTITY,
            "passkey_copied",
            "This passkey was not accepted because its counter went backward: there may be a copy of it. Sign in another way, remove \
             it on the account page, and add it again.",
        ),
        FactorError::PasskeyExists => (S::CONFLICT, "passkey_exists", "This passkey is set up already."),
        FactorError::PasskeyNotFound => (S::NOT_FOUND, "passkey_not_found", "You have no such passkey."),
        FactorError::NotFound => (S::NOT_FOUND, "factor_not_found", "No second factor is set up for this account."),
        FactorError::NoPasswordSession => (
            S::CONFLICT,
            "no_password_session",
            "Second factors are managed in a browser. Sign in there with your name and password.",
        ),
    };
    ApiError::new(status, code, detail)
}

/// Passkeys are not available at this address.
fn passkeys_unavailable(why: PasskeyOriginError) -> ApiError {
    let detail = match why {
        PasskeyOriginError::Insecure => {
            "Passkeys work over HTTPS only. Start the server with --ssl, or put it behind a proxy with HTTPS that \
             --trusted-proxies names."
        }
        PasskeyOriginError::NoHostName => {
            "Passkeys need a name in the address, not an IP address. Open this server under its name, on its own machine as \
             localhost."
        }
    };
    let mut error = ApiError::new(StatusCode::CONFLICT, "passkeys_unavailable", detail);
    error.extra.insert("why".to_owned(), why.as_str().into());
    error
}
