//! `/api/audit`: the audit log.

use app::domain::access::Permission;
use app::protocol::audit::{AuditEntry, AuditFilters, AuditPage, AuditQuery, AuditVerification};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::conditional::{IfNoneMatch, ListResponse};
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc, schema_of};
use crate::http::state::AppState;
use crate::service::access::Requirement;
use crate::service::audit::entries;

pub fn routes(app: &AppState) -> Routes {
    let view_audit = Requirement::Permission(Permission::AdminAudit);
    Routes::new(app, "Audit")
        .get("/audit", view_audit, LIST, list)
        .get("/audit/export", view_audit, EXPORT, export)
        .get("/audit/verify", view_audit, VERIFY, verify)
}

const LIST: OperationDoc = OperationDoc {
    problems: &["out_of_range"],
    ..OperationDoc::new("listAudit", "Lists entries of the audit log, newest first.")
};

async fn list(
    State(app): State<AppState>,
    Query(query): Query<AuditQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<AuditPage>, ApiError> {
    Ok(if_none_match.listed(app.services.audit.audit_page(&query).await?))
}

const EXPORT: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "The entries, oldest first.", ContentDoc::Lines(schema_of::<AuditEntry>))],
    problems: &["out_of_range"],
    ..OperationDoc::new("exportAudit", "Streams the audit log as JSON lines.")
};

/// Streams one line of JSON per entry. If the database fails while streaming, the response is aborted.
async fn export(State(app): State<AppState>, Query(filters): Query<AuditFilters>) -> Result<Response, ApiError> {
    let entries = entries::export(app.services.context.store.clone(), &filters, app.services.context.now())?;
    let line = |entry| serde_json::to_string(&entry).map(|line| line + "\n").map_err(std::io::Error::other);
    let failed = |error| {
        tracing::error!(?error, "audit: export aborted");
        std::io::Error::other("database error")
    };
    let lines = entries.map_err(failed).and_then(move |entry| std::future::ready(line(entry)));
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

const VERIFY: OperationDoc = OperationDoc {
    description: "Reads the whole audit log, which takes time; concurrent requests wait.",
    problems: &["files_unavailable"],
    ..OperationDoc::new("verifyAudit", "Verifies that the audit log is unmodified, and lists differences.")
};

async fn verify(State(app): State<AppState>) -> Result<Json<AuditVerification>, ApiError> {
    Ok(Json(app.services.audit.verify_audit().await?))
}
