//! `GET /api/session`: who is asking, and under which address.

use app::domain::passkey::{NoPasskeys, Origin};
use app::protocol::access::{ProveSession, SessionView};
use app::protocol::fingerprint::Fingerprint;
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::{Extension, Json};

use super::access::Mode;
use super::arrival::Scheme;
use super::json::Json as Body;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::{self, Peer};
use super::routes::Routes;
use super::ui::forms;
use crate::service::access::{Needs, Person, Proof};
use crate::state::App;
use crate::tls::Tls;

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Account").get("/session", Needs::Login, SHOW, show).post(
        "/session/proof",
        Needs::Login,
        PROVE,
        prove,
    )
}

const PROVE: Doc = Doc {
    problems: &["wrong_password", "factor_needed", "wrong_code", "too_many_requests"],
    ..Doc::of("proveSession", "Takes the password once more, and the second factor, for what needs a recent one.")
};

async fn prove(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    peer: Option<Extension<Peer>>,
    Body(proof): Body<ProveSession>,
) -> Result<Json<Accepted>, ApiError> {
    let proof = Proof { secret: proof.password, code: proof.code, credential: None };
    forms::access::prove(&app, &person, request::address(peer), proof).await?;
    Ok(Json(Accepted { success: true }))
}

const SHOW: Doc = Doc::of("whoAmI", "Says who is asking, and what they may do with what they came with.");

async fn show(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
) -> Json<SessionView> {
    Json(view(&app, &person, scheme, &headers))
}

/// What the caller is told of itself.
pub fn view(app: &App, person: &Person, scheme: Scheme, headers: &HeaderMap) -> SessionView {
    let Address { base_url, fingerprint } = address(app, scheme, headers);
    SessionView {
        name: person.name.clone(),
        token_id: person.token().cloned(),
        permissions: person.permissions,
        unread_notices: person.unread_notices,
        single_user: app.mode == Mode::SingleUser,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        base_url,
        fingerprint,
    }
}

/// The way to this server, for commands to copy.
pub struct Address {
    /// The address that the caller used.
    pub base_url: String,
    /// How agents know that it is this server, where the certificate alone does not tell.
    pub fingerprint: Option<Fingerprint>,
}

/// The way by which the caller came.
pub fn address(app: &App, scheme: Scheme, headers: &HeaderMap) -> Address {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // A name that could not stand in a command is not repeated.
    let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    let base_url = format!("{}://{}", scheme.as_str(), host.filter(plain).unwrap_or(&app.address));
    // A proxy has a certificate of its own.
    let fingerprint = app.tls.as_ref().filter(|_| scheme == Scheme::OwnHttps).and_then(Tls::to_pin);
    Address { base_url, fingerprint }
}

/// The address that the caller's browser shows, if passkeys work there.
pub fn origin(scheme: Scheme, headers: &HeaderMap) -> Result<Origin, NoPasskeys> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    Origin::of(scheme.is_secure(), host)
}
