//! `/api/admin/system`: how the server is set up, and how it does.

use app::domain::access::Permission;
use app::domain::time::Timestamp;
use app::protocol::system::{SystemView, TlsView};
use axum::Json;
use axum::extract::State;

use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::Needs;
use crate::service::refusal::Refusal;
use crate::state::App;

/// In a data directory: when its newest backup was taken, as RFC 3339.
pub const BACKED_UP: &str = "backed-up-at";

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "System").get("/admin/system", Needs::To(Permission::AdminSystem), SHOW, show)
}

const SHOW: Doc = Doc {
    detail: "Secrets are not in it: of settings that hold one, only where it came from.",
    problems: &["files_unavailable"],
    ..Doc::of("getSystem", "Says how the server is set up, and how it does.")
};

async fn show(State(app): State<App>) -> Result<Json<SystemView>, ApiError> {
    Ok(Json(view(&app).await?))
}

/// All there is to say of this server.
pub async fn view(app: &App) -> Result<SystemView, Refusal> {
    let system = app.core.system().await?;
    // Without a note there was no backup, or it was taken elsewhere.
    let note = tokio::fs::read_to_string(app.data.join(BACKED_UP)).await.ok();
    Ok(SystemView {
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
