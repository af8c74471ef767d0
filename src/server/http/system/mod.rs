//! `/api/admin/system`: configuration and state of the server.

pub mod health;
pub(super) mod metrics;

use app::domain::access::Permission;
use app::domain::time::Timestamp;
use app::protocol::system::{CheckView, SupportBundle, SystemView, TlsView};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::operation::doc::{OperationDoc, ResponseDoc};
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::ServiceError;

/// A file in the data directory with the time of the newest backup (RFC 3339).
pub const BACKUP_TIME_FILE: &str = "backed-up-at";

/// The warning when passwords and tokens are sent over a network unencrypted.
pub const PLAIN_HTTP_WARNING: &str = "The server speaks plain HTTP on a network address: passwords and tokens can be intercepted. \
     Use --ssl; or let a proxy on this host end TLS, listen on 127.0.0.1, and list the proxy in --trusted-proxies.";

pub fn routes(app: &AppState) -> Routes {
    let view_system = Requirement::Permission(Permission::AdminSystem);
    Routes::new(app, "System").get("/admin/system", view_system, SHOW, show).get(
        "/admin/system/support",
        view_system,
        SUPPORT_BUNDLE,
        support_bundle,
    )
}

const SHOW: OperationDoc = OperationDoc {
    description: "Contains no secrets: of settings with a secret, only the source.",
    problems: &["files_unavailable"],
    ..OperationDoc::new("getSystem", "Shows the server's configuration and state.")
};

async fn show(State(app): State<AppState>) -> Result<Json<SystemView>, ApiError> {
    Ok(Json(system_view(&app).await?))
}

const SUPPORT_BUNDLE: OperationDoc = OperationDoc {
    description: "The current system, overview and metrics as one file. It contains no secrets, but names of workers \
             and configurations.",
    responses: &[ResponseDoc::json::<SupportBundle>(200, "The report.")],
    problems: &["files_unavailable"],
    ..OperationDoc::new("getSupportBundle", "Creates a support report.")
};

async fn support_bundle(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Response, ApiError> {
    let (system, overview) = (system_view(&app).await?, app.services.system.overview(&principal).await?);
    let metrics = metrics::render(&app).await.lines().map(str::to_owned).collect();
    let headers = [
        (header::CONTENT_DISPOSITION, "attachment; filename=\"simpletuner-support.json\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Json(SupportBundle { system, overview, metrics })).into_response())
}

/// Returns the state of this server.
pub async fn system_view(app: &AppState) -> Result<SystemView, ServiceError> {
    let system = app.services.system.system_view().await?;
    // Without the file there was no backup, or it was taken elsewhere.
    let backup_time = tokio::fs::read_to_string(app.data_dir.join(BACKUP_TIME_FILE)).await.ok();
    let mut checks = system.checks;
    if app.is_plain_http_exposed() {
        let (name, detail) = ("encryption".to_owned(), Some(PLAIN_HTTP_WARNING.to_owned()));
        checks.push(CheckView { name, status: "warning".to_owned(), detail });
    }
    Ok(SystemView {
        checks,
        backed_up_at: backup_time.and_then(|backup_time| Timestamp::parse_rfc3339(backup_time.trim())),
        tls: app.tls.as_ref().map(|tls| TlsView {
            fingerprint: tls.fingerprint(),
            vouched_for: tls.is_ca_signed(),
            ends_at: tls.ends_at(),
        }),
        settings: app.settings.clone(),
        ..system
    })
}
