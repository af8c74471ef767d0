//! `GET /api/session`: who is asking, and under which address.

use app::protocol::access::SessionView;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::{Extension, Json};

use super::access::Mode;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app).get("/session", Needs::Login, show)
}

async fn show(State(app): State<App>, Extension(person): Extension<Person>, headers: HeaderMap) -> Json<SessionView> {
    Json(view(&app, &person, &headers))
}

/// What the caller is told of itself.
pub fn view(app: &App, person: &Person, headers: &HeaderMap) -> SessionView {
    SessionView {
        name: person.name.clone(),
        permissions: person.permissions,
        single_user: app.mode == Mode::SingleUser,
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        base_url: base_url(app, headers),
    }
}

/// The address that the caller used, for commands to copy.
pub fn base_url(app: &App, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // A name that could not stand in a command is not repeated.
    let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    format!("http://{}", host.filter(plain).unwrap_or(&app.address))
}
