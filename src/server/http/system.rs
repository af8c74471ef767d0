//! `/api/admin/system`: how the server is set up, and how it does.

use app::domain::access::Permission;
use app::domain::time::Timestamp;
use app::protocol::system::{CheckView, SupportBundle, SystemView, TlsView};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::metrics;
use super::openapi::doc::{Answer, Doc};
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::service::refusal::Refusal;
use crate::state::App;

/// In a data directory: when its newest backup was taken, as RFC 3339.
pub const BACKED_UP: &str = "backed-up-at";

/// What is wrong where passwords and tokens go over a network as they are.
pub const PLAIN_HTTP: &str = "The server speaks plain HTTP on a network address: passwords and tokens can be read on the way. \
     Use --ssl; or let a proxy on this host end TLS, listen on 127.0.0.1, and name the proxy in --trusted-proxies.";

/// The routes.
pub fn routes(app: &App) -> Routes {
    let sees = Needs::To(Permission::AdminSystem);
    Routes::new(app, "System").get("/admin/system", sees, SHOW, show).get(
        "/admin/system/support",
        sees,
        SUPPORT,
        support,
    )
}

const SHOW: Doc = Doc {
    detail: "Secrets are not in it: of settings that hold one, only where it came from.",
    problems: &["files_unavailable"],
    ..Doc::of("getSystem", "Says how the server is set up, and how it does.")
};

async fn show(State(app): State<App>) -> Result<Json<SystemView>, ApiError> {
    Ok(Json(view(&app).await?))
}

const SUPPORT: Doc = Doc {
    detail: "The system, the overview and the metrics of this moment, as one file. Nothing secret is in it; names of workers \
             and of configurations are.",
    answers: &[Answer::json::<SupportBundle>(200, "What to pass on.")],
    problems: &["files_unavailable"],
    ..Doc::of("getSupportBundle", "Gathers what whoever helps asks for.")
};

async fn support(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Response, ApiError> {
    let (system, overview) = (view(&app).await?, app.core.overview(&person).await?);
    let metrics = metrics::text(&app).await.lines().map(str::to_owned).collect();
    let headers = [
        (header::CONTENT_DISPOSITION, "attachment; filename=\"simpletuner-support.json\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Json(SupportBundle { system, overview, metrics })).into_response())
}

/// All there is to say of this server.
pub async fn view(app: &App) -> Result<SystemView, Refusal> {
    let system = app.core.system().await?;
    // Without a note there was no backup, or it was taken elsewhere.
    let note = tokio::fs::read_to_string(app.data.join(BACKED_UP)).await.ok();
    let mut checks = system.checks;
    if app.speaks_plainly() {
        let (name, detail) = ("encryption".to_owned(), Some(PLAIN_HTTP.to_owned()));
        checks.push(CheckView { name, status: "warning".to_owned(), detail });
    }
    Ok(SystemView {
        checks,
        backed_up_at: note.and_then(|note| Timestamp::parse_rfc3339(note.trim())),
        tls: app.tls.as_ref().map(|tls| TlsView {
            fingerprint: tls.fingerprint(),
            vouched_for: tls.is_vouched_for(),
            ends_at: tls.ends_at(),
        }),
        settings: app.settings.clone(),
        ..system
    })
}
