//! `GET /api/session`: the caller, and the address of the server.

use app::domain::passkey::{PasskeyOrigin, PasskeyOriginError};
use app::protocol::access::{Reauthenticate, SessionView};
use app::protocol::agents::ReportResponse;
use app::protocol::system::fingerprint::Fingerprint;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::{Extension, Json};

use crate::http::access::AuthMode;
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::json::Json as Body;
use crate::http::edge::request;
use crate::http::edge::request::Peer;
use crate::http::openapi::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::http::ui::forms;
use crate::service::access::{Principal, ReauthProof, Requirement};
use crate::tls::Tls;

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
    forms::access::reauthenticate(&app, &principal, request::peer_ip(peer), proof).await?;
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

/// Returns what the caller may know of itself.
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

/// The address of this server, for commands to copy.
pub struct ServerAddress {
    /// The URL that the caller used.
    pub base_url: String,
    /// The fingerprint that agents verify, where the certificate alone does not suffice.
    pub fingerprint: Option<Fingerprint>,
}

/// Returns the address that the caller used.
pub fn server_address(app: &AppState, scheme: Scheme, headers: &HeaderMap) -> ServerAddress {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // A name that could break a command is not repeated.
    let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    let base_url = format!("{}://{}", scheme.as_str(), host.filter(plain).unwrap_or(&app.address));
    // A proxy has its own certificate.
    let fingerprint = app.tls.as_ref().filter(|_| scheme == Scheme::DirectHttps).and_then(Tls::pin);
    ServerAddress { base_url, fingerprint }
}

/// Returns the origin that the caller's browser shows, if passkeys work there.
pub fn passkey_origin(scheme: Scheme, headers: &HeaderMap) -> Result<PasskeyOrigin, PasskeyOriginError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    PasskeyOrigin::new(scheme.is_secure(), host)
}
