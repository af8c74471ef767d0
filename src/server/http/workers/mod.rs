//! `/api/admin`: workers and users.

pub(super) mod export;
pub(super) mod history;

use app::domain::access::Permission;
use app::protocol::agents::ReportResponse;
use app::protocol::gpus::history::{FleetHistory, GpuHistory, HistoryQuery};
use app::protocol::gpus::{GpusPage, GpusQuery};
use app::protocol::status::BulkTarget;
use app::protocol::workers::{
    CreateWorker, CreatedWorker, DrainWorker, EditWorker, RotateToken, WorkerView, WorkersPage, WorkersQuery,
};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};

use super::bulk;
use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::client_addr::Scheme;
use crate::http::edge::conditional::{IfMatch, IfNoneMatch, ListResponse, TaggedResponse};
use crate::http::edge::extractors::{Path, Query, worker_id};
use crate::http::edge::json::{CreatedJson, Json as Body, OptionalJson};
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::server_address::{ServerAddress, server_address};
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::text::shell_quoted;

pub fn routes(app: &AppState) -> Routes {
    let (view_fleet, manage_workers) =
        (Requirement::Permission(Permission::FleetView), Requirement::Permission(Permission::AdminWorkers));
    let with_recent_auth = Requirement::RecentlyAuthenticated(Permission::AdminWorkers);
    Routes::new(app, "Workers")
        .get("/admin/workers", view_fleet, LIST, list)
        .get("/admin/workers/export", view_fleet, export::EXPORT, export::export)
        .post("/admin/workers", with_recent_auth, CREATE, create)
        .get("/admin/workers/{id}", view_fleet, SHOW, show)
        .get("/admin/workers/{id}/attempts", manage_workers, history::ATTEMPTS, history::attempts)
        .get("/admin/workers/{id}/events", manage_workers, history::EVENTS, history::events)
        .get("/admin/workers/{id}/gpus/history", view_fleet, HISTORY, history)
        .get("/admin/gpus", view_fleet, GPUS, gpus)
        .get("/admin/gpus/history", view_fleet, FLEET_HISTORY, fleet_history)
        .patch("/admin/workers/{id}", manage_workers, EDIT, edit)
        .delete("/admin/workers/{id}", with_recent_auth, DELETE, delete)
        .merge(bulk::routes(app, "Workers", BulkTarget::Workers, "/admin/workers"))
        .post("/admin/workers/{id}/drain", manage_workers, DRAIN, drain)
        .post("/admin/workers/{id}/resume", manage_workers, RESUME, resume)
        .post("/admin/workers/{id}/token", with_recent_auth, ROTATE, rotate)
        .layer(|router| limits::limit_body(router, limits::API))
}

/// Fields that callers without permission to manage workers do not get.
const VISIBILITY_NOTE: &str =
    "Tokens, addresses, settings, and whether the agent verifies this server require `admin.workers`.";

const LIST: OperationDoc = OperationDoc {
    description: VISIBILITY_NOTE,
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("listWorkers", "Lists workers, by name by default.")
};

async fn list(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<WorkersQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<WorkersPage>, ApiError> {
    Ok(if_none_match.listed(app.services.workers.workers_page(&principal, &query).await?))
}

const CREATE: OperationDoc = OperationDoc {
    description: "The token is only in this response, so a repeated request cannot return it: \
             the unique name prevents a second one.",
    problems: &["invalid_name", "invalid_labels", "invalid_network", "out_of_range", "too_large", "name_taken"],
    ..OperationDoc::new("createWorker", "Creates a worker and its token.")
};

async fn create(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Body(create): Body<CreateWorker>,
) -> Result<CreatedJson<CreatedWorker>, ApiError> {
    let created = app.services.workers.create_worker(caller_from_principal(&principal), create).await?;
    Ok(CreatedJson(created_worker_view(&server_address(&app, scheme, &headers), created)))
}

const SHOW: OperationDoc = OperationDoc {
    description: VISIBILITY_NOTE,
    problems: &["worker_not_found"],
    ..OperationDoc::new("getWorker", "Shows a worker.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    if_none_match: IfNoneMatch,
) -> Result<TaggedResponse<WorkerView>, ApiError> {
    let worker = app.services.workers.worker_for(&principal, &worker_id(&id)?).await?;
    Ok(if_none_match.tagged(Some(&worker.revision.clone()), worker))
}

const HISTORY: OperationDoc = OperationDoc {
    problems: &["worker_not_found"],
    ..OperationDoc::new("getWorkerGpuHistory", "Shows readings of a worker's GPUs of the last hour or day.")
};

async fn history(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<GpuHistory>, ApiError> {
    Ok(Json(app.services.gpus.worker_history(&worker_id(&id)?, query.range.unwrap_or_default()).await?))
}

const GPUS: OperationDoc = OperationDoc {
    description: VISIBILITY_NOTE,
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("listGpus", "Lists GPUs by worker, with their state and latest readings.")
};

async fn gpus(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<GpusQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<GpusPage>, ApiError> {
    Ok(if_none_match.listed(app.services.gpus.gpus_page(&principal, &query).await?))
}

const FLEET_HISTORY: OperationDoc = OperationDoc::new(
    "getGpuHistory",
    "Shows mean readings of all GPUs of the last hour or day, and how many were allocated.",
);

async fn fleet_history(
    State(app): State<AppState>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<FleetHistory>, ApiError> {
    Ok(Json(app.services.gpus.fleet_history(query.range.unwrap_or_default())))
}

const DELETE: OperationDoc = OperationDoc {
    description: "Keeps the history of its jobs.",
    problems: &["worker_not_found", "worker_connected"],
    ..OperationDoc::new("deleteWorker", "Deletes a worker that is offline.")
};

async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.workers.delete_worker(caller_from_principal(&principal), worker_id(&id)?).await?;
    Ok(Json(ReportResponse { success: true }))
}

const EDIT: OperationDoc = OperationDoc {
    description: "With `allowed_networks`, a browser session must have confirmed its password in the last 15 minutes.",
    problems: &[
        "password_needed",
        "worker_not_found",
        "invalid_name",
        "invalid_labels",
        "invalid_network",
        "too_large",
        "name_taken",
    ],
    ..OperationDoc::new("editWorker", "Changes a worker's name, type or labels; omitted fields keep their values.")
};

async fn edit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    IfMatch(revisions): IfMatch,
    Body(edit): Body<EditWorker>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    if edit.allowed_networks.is_some() {
        app.services.access.require_recent_auth(&principal)?;
    }
    app.services.workers.edit_worker(caller_from_principal(&principal), id.clone(), edit, revisions).await?;
    Ok(Json(app.services.workers.worker_for(&principal, &id).await?))
}

const DRAIN: OperationDoc = OperationDoc {
    problems: &["worker_not_found", "out_of_range", "too_large"],
    ..OperationDoc::new("drainWorker", "Drains a worker: running jobs finish, and it gets no new ones.")
};

async fn drain(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    OptionalJson(drain): OptionalJson<DrainWorker>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.services.workers.drain_worker(caller_from_principal(&principal), id.clone(), drain).await?;
    Ok(Json(app.services.workers.worker_for(&principal, &id).await?))
}

const RESUME: OperationDoc =
    OperationDoc { problems: &["worker_not_found"], ..OperationDoc::new("resumeWorker", "Resumes a drained worker.") };

async fn resume(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.services.workers.resume_worker(caller_from_principal(&principal), id.clone()).await?;
    Ok(Json(app.services.workers.worker_for(&principal, &id).await?))
}

const ROTATE: OperationDoc = OperationDoc {
    description: "The old one stops working, and the worker's streams end, unless an overlap is requested. The \
             token is only in this response.",
    problems: &["worker_not_found", "out_of_range"],
    ..OperationDoc::new("rotateWorkerToken", "Rotates a worker's token.")
};

async fn rotate(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Path(id): Path<String>,
    OptionalJson(rotate): OptionalJson<RotateToken>,
) -> Result<Json<CreatedWorker>, ApiError> {
    let rotated = app.services.workers.rotate_token(caller_from_principal(&principal), worker_id(&id)?, rotate).await?;
    Ok(Json(created_worker_view(&server_address(&app, scheme, &headers), rotated)))
}

/// Returns a new worker with the command that starts its agent.
pub fn created_worker_view(
    address: &ServerAddress,
    created: crate::service::workers::WorkerWithToken,
) -> CreatedWorker {
    let persistent = created.worker.kind == Some(app::domain::worker::WorkerKind::Persistent);
    let flag = if persistent { " --persistent" } else { "" };
    let pin = address.fingerprint.map(|fingerprint| format!(" --orchestrator-fingerprint {fingerprint}"));
    let connection_command = format!(
        "SIMPLETUNER_WORKER_TOKEN={} simpletuner worker --orchestrator-url {}{} --name {}{flag}",
        created.token,
        address.base_url,
        pin.unwrap_or_default(),
        shell_quoted(&created.worker.name),
    );
    CreatedWorker {
        worker_id: created.worker.id,
        token: created.token,
        name: created.worker.name,
        token_unused_ends_at: created.unused_expires_at,
        connection_command,
    }
}
