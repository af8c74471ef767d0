//! `/api/audit`: the trail.

use app::domain::access::Permission;
use app::protocol::audit::{AuditEntry, AuditFilters, AuditPage, AuditQuery, AuditVerdict};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::TryStreamExt;

use super::address::Query;
use super::conditional::{IfNoneMatch, Listed};
use super::openapi::doc::{Answer, Content, Doc, schema_of};
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::Needs;
use crate::service::audit::trail;
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let reads = Needs::To(Permission::AdminAudit);
    Routes::new(app, "Audit").get("/audit", reads, LIST, list).get("/audit/export", reads, EXPORT, export).get(
        "/audit/verify",
        reads,
        VERIFY,
        verify,
    )
}

const LIST: Doc =
    Doc { problems: &["out_of_range"], ..Doc::of("listAudit", "Lists entries of the audit trail, newest first.") };

async fn list(
    State(app): State<App>,
    Query(query): Query<AuditQuery>,
    known: IfNoneMatch,
) -> Result<Listed<AuditPage>, ApiError> {
    Ok(known.listed(app.core.audit_page(&query).await?))
}

const EXPORT: Doc = Doc {
    answers: &[Answer::with(200, "The entries, oldest first.", Content::Lines(schema_of::<AuditEntry>))],
    problems: &["out_of_range"],
    ..Doc::of("exportAudit", "Streams the audit trail, a line of JSON for each entry.")
};

/// A line of JSON for each entry. If the database fails on the way, the answer breaks off.
async fn export(State(app): State<App>, Query(filters): Query<AuditFilters>) -> Result<Response, ApiError> {
    let entries = trail::export(app.core.store.clone(), &filters, app.core.now())?;
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
    Ok((headers, Body::from_stream(lines)).into_response())
}

const VERIFY: Doc = Doc {
    detail: "It reads the whole trail, which takes its time; who asks meanwhile waits for their turn.",
    problems: &["files_unavailable"],
    ..Doc::of("verifyAudit", "Says whether the audit trail is as it was written, and if not, where it differs.")
};

async fn verify(State(app): State<App>) -> Result<Json<AuditVerdict>, ApiError> {
    Ok(Json(app.core.verify_audit().await?))
}
