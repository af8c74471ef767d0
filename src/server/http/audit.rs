//! `/api/audit`: the trail.

use app::domain::access::Permission;
use app::protocol::audit::{AuditPage, AuditQuery};
use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::IntoResponse;
use futures_util::TryStreamExt;

use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::Needs;
use crate::service::audit::trail;
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let reads = Needs::To(Permission::AdminAudit);
    Routes::new(app).get("/audit", reads, list).get("/audit/export", reads, export)
}

async fn list(State(app): State<App>, Query(query): Query<AuditQuery>) -> Result<Json<AuditPage>, ApiError> {
    Ok(Json(app.core.audit_page(&query).await?))
}

/// A line of JSON for each entry. If the database fails on the way, the answer breaks off.
async fn export(State(app): State<App>, Query(query): Query<AuditQuery>) -> Result<impl IntoResponse, ApiError> {
    let entries = trail::export(app.core.store.clone(), &query, app.core.now())?;
    let line = |entry| serde_json::to_string(&entry).map(|line| line + "\n").map_err(std::io::Error::other);
    let failed = |refusal| {
        tracing::error!(?refusal, "an export of the audit trail broke off");
        std::io::Error::other("the database failed")
    };
    let lines = entries.map_err(failed).and_then(move |entry| std::future::ready(line(entry)));
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(lines)))
}
