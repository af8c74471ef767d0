//! Sign-ins and confirmations of the password: wrong passwords are counted, and recorded in the audit log.

use std::net::IpAddr;

use app::domain::audit::rate_limit::RejectionKind;
use serde_json::json;

use crate::http::edge::request::{caller_from_actor, caller_from_principal};
use crate::http::state::AppState;
use crate::service::access::rate_limits::KnownBrowser;
use crate::service::access::{AuthMethod, Principal, ReauthProof};
use crate::service::error::{FactorError, ServiceError};

/// Verifies the password again, and the second factor of a user who has one.
pub async fn reauthenticate(
    app: &AppState,
    principal: &Principal,
    peer: Option<IpAddr>,
    proof: ReauthProof,
) -> Result<(), ServiceError> {
    let verification = app.services.access.reauthenticate(caller_from_principal(principal), principal, proof);
    let Some(user) = &principal.user else { return count_password_attempt(app, principal, peer, verification).await };
    let browser = known_browser(principal);
    count_password_attempt(app, principal, peer, app.services.access.try_code(user, browser, verification)).await
}

/// Identifies the caller by their session or token, so that wrong passwords that others try for the
/// same name do not lock them out.
fn known_browser(principal: &Principal) -> Option<KnownBrowser> {
    match &principal.via {
        AuthMethod::Session(session) => Some(KnownBrowser(session.to_string())),
        AuthMethod::Token { id, .. } => Some(KnownBrowser(id.to_string())),
        AuthMethod::Loopback | AuthMethod::Host => None,
    }
}

/// Counts a wrong password like one at the sign-in.
pub async fn count_password_attempt(
    app: &AppState,
    principal: &Principal,
    peer: Option<IpAddr>,
    attempt: impl Future<Output = Result<(), ServiceError>>,
) -> Result<(), ServiceError> {
    let outcome =
        app.services.access.try_password(peer, Some(&principal.name), known_browser(principal), attempt).await;
    if let Err(error) = &outcome {
        record_failed_login(app, peer, &principal.name, error).await;
    }
    outcome
}

/// Records a rejected sign-in in the audit log.
pub async fn record_failed_login(app: &AppState, peer: Option<IpAddr>, name: &str, error: &ServiceError) {
    let reason = match error {
        ServiceError::WrongToken => "wrong_token",
        ServiceError::WrongPassword => "wrong_password",
        ServiceError::Factor(FactorError::WrongCode) => "wrong_code",
        ServiceError::Factor(FactorError::WrongPasskey) => "wrong_passkey",
        ServiceError::Factor(FactorError::PasskeyCopied) => "passkey_copied",
        ServiceError::RateLimited { .. } => "too_many_requests",
        _ => return,
    };
    let caller = caller_from_actor("unknown");
    // Record only names of existing users: a password may have been typed into the wrong field.
    let name = if app.services.access.user_exists(name).await { name } else { "" };
    app.services.audit.record_rejection(caller, RejectionKind::Login, peer, name, json!({"reason": reason})).await;
}
