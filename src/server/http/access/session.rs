//! `GET /api/session`: the caller, and the address of the server.

use app::protocol::access::{Reauthenticate, SessionView};
use app::protocol::agents::ReportResponse;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};

use super::password_attempts;
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::json::Json as Body;
use crate::http::edge::request;
use crate::http::edge::request::Peer;
use crate::http::edge::server_address::{ServerAddress, server_address};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::{AppState, AuthMode};
use crate::service::access::{Principal, ReauthProof, Requirement};

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Account").get("/session", Requirement::Login, SHOW, show).post(
        "/session/proof",
        Requirement::Login,
        REAUTHENTICATE,
        reauthenticate,
    )
}

const REAUTHENTICATE: OperationDoc = OperationDoc {
    problems: &["wrong_password", "factor_needed", "wrong_code", "too_many_requests"],
    ..OperationDoc::new(
        "proveSession",
        "Confirms the password and the second factor again, for actions that require a recent confirmation.",
    )
};

async fn reauthenticate(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    peer: Option<Extension<Peer>>,
    Body(proof): Body<Reauthenticate>,
) -> Result<Json<ReportResponse>, ApiError> {
    let proof = ReauthProof { secret: proof.password, code: proof.code, credential: None };
    password_attempts::reauthenticate(&app, &principal, request::peer_ip(peer), proof).await?;
    Ok(Json(ReportResponse { success: true }))
}

const SHOW: OperationDoc = OperationDoc::new("whoAmI", "Shows the caller and its permissions.");

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Json<SessionView> {
    Json(session_view(&app, &principal, scheme, &headers))
}

/// Returns the caller, its permissions, and the address of the server.
pub fn session_view(app: &AppState, principal: &Principal, scheme: Scheme, headers: &HeaderMap) -> SessionView {
    let ServerAddress { base_url, fingerprint } = server_address(app, scheme, headers);
    SessionView {
        name: principal.name.clone(),
        token_id: principal.token().cloned(),
        permissions: principal.permissions,
        unread_notices: principal.unread_notices,
        single_user: app.mode == AuthMode::SingleUser,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        base_url,
        fingerprint,
    }
}
