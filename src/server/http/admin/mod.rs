//! `/api/admin`: workers, and people.

mod export;
mod history;
mod users;

use app::domain::access::Permission;
use app::domain::ids::WorkerId;
use app::protocol::gpus::{GpusPage, GpusQuery};
use app::protocol::history::{FleetHistory, GpuHistory, HistoryQuery};
use app::protocol::status::BulkAction;
use app::protocol::worker::Accepted;
use app::protocol::workers::{
    CreateWorker, CreatedWorker, DrainWorker, EditWorker, RotateToken, WorkerView, WorkersPage, WorkersQuery,
};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};

use super::address::{Path, Query};
use super::arrival::Scheme;
use super::bulk;
use super::conditional::{IfMatch, IfNoneMatch, Listed, Tagged};
use super::json::{Created, Json as Body, OptionalJson};
use super::limits;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use super::session::{Address, address};
use crate::service::access::{Needs, Person};
use crate::state::App;
use crate::text::shell_quoted;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let workers = Needs::To(Permission::AdminWorkers);
    let taking = Needs::ToProved(Permission::AdminWorkers);
    Routes::new(app, "Workers")
        .get("/admin/workers", workers, LIST, list)
        .get("/admin/workers/export", workers, export::EXPORT, export::export)
        .post("/admin/workers", taking, CREATE, create)
        .get("/admin/workers/{id}", workers, SHOW, show)
        .get("/admin/workers/{id}/attempts", workers, history::ATTEMPTS, history::attempts)
        .get("/admin/workers/{id}/events", workers, history::EVENTS, history::events)
        .get("/admin/workers/{id}/gpus/history", workers, HISTORY, history)
        .get("/admin/gpus", workers, GPUS, gpus)
        .get("/admin/gpus/history", workers, FLEET_HISTORY, fleet_history)
        .patch("/admin/workers/{id}", workers, EDIT, edit)
        .delete("/admin/workers/{id}", taking, DELETE, delete)
        .post("/admin/workers/bulk/drain", workers, bulk::DRAIN, bulk::drain)
        .post("/admin/workers/bulk/resume", workers, bulk::RESUME, bulk::of(BulkAction::Resume))
        .post("/admin/workers/bulk/delete", taking, bulk::DELETE, bulk::of(BulkAction::Delete))
        .post("/admin/workers/{id}/drain", workers, DRAIN, drain)
        .post("/admin/workers/{id}/resume", workers, RESUME, resume)
        .post("/admin/workers/{id}/token", taking, ROTATE, rotate)
        .within(|router| limits::bounded(router, limits::API))
        .and(users::routes(app))
}

const LIST: Doc = Doc {
    problems: &["invalid_search", "out_of_range"],
    ..Doc::of("listWorkers", "Lists workers, by name if nothing else is asked for.")
};

async fn list(
    State(app): State<App>,
    Query(query): Query<WorkersQuery>,
    known: IfNoneMatch,
) -> Result<Listed<WorkersPage>, ApiError> {
    Ok(known.listed(app.core.workers_page(&query).await?))
}

const CREATE: Doc = Doc {
    detail: "The token is shown in this answer and never again, so a repeated request cannot be answered with it: \
             the name is what keeps a repetition from making a second one.",
    problems: &["invalid_name", "invalid_labels", "invalid_network", "out_of_range", "too_much", "name_taken"],
    ..Doc::of("createWorker", "Makes a worker and its token.")
};

async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Body(create): Body<CreateWorker>,
) -> Result<Created<CreatedWorker>, ApiError> {
    let created = app.core.create_worker(caller(&person), create).await?;
    Ok(Created(created_view(&address(&app, scheme, &headers), created)))
}

const SHOW: Doc = Doc { problems: &["worker_not_found"], ..Doc::of("getWorker", "Shows a worker.") };

async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    known: IfNoneMatch,
) -> Result<Tagged<WorkerView>, ApiError> {
    let worker = app.core.worker_page(&worker_id(&id)?).await?;
    Ok(known.tagged(Some(&worker.revision.clone()), worker))
}

const HISTORY: Doc = Doc {
    problems: &["worker_not_found"],
    ..Doc::of("getWorkerGpuHistory", "Shows how a worker's GPUs did in the last hour or day.")
};

async fn history(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<GpuHistory>, ApiError> {
    Ok(Json(app.core.worker_history(&worker_id(&id)?, query.range.unwrap_or_default()).await?))
}

const GPUS: Doc = Doc {
    problems: &["invalid_search", "out_of_range"],
    ..Doc::of("listGpus", "Lists the GPUs of workers, by worker, with where each stands and how it was last.")
};

async fn gpus(
    State(app): State<App>,
    Query(query): Query<GpusQuery>,
    known: IfNoneMatch,
) -> Result<Listed<GpusPage>, ApiError> {
    Ok(known.listed(app.core.gpus_page(&query).await?))
}

const FLEET_HISTORY: Doc =
    Doc::of("getGpuHistory", "Shows how all GPUs together did in the last hour or day, and how many had a job.");

async fn fleet_history(
    State(app): State<App>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<FleetHistory>, ApiError> {
    Ok(Json(app.core.fleet_history(query.range.unwrap_or_default())))
}

const DELETE: Doc = Doc {
    detail: "The history of its jobs stays.",
    problems: &["worker_not_found", "worker_connected"],
    ..Doc::of("deleteWorker", "Removes a worker that is offline.")
};

async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.delete_worker(caller(&person), worker_id(&id)?).await?;
    Ok(Json(Accepted { success: true }))
}

const EDIT: Doc = Doc {
    detail: "With `allowed_networks`, a browser's session must have given its password in the last 15 minutes.",
    problems: &[
        "password_needed",
        "worker_not_found",
        "invalid_name",
        "invalid_labels",
        "invalid_network",
        "too_much",
        "name_taken",
    ],
    ..Doc::of("editWorker", "Changes a worker's name, type or labels; what is left out stays.")
};

async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    IfMatch(seen): IfMatch,
    Body(edit): Body<EditWorker>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    if edit.allowed_networks.is_some() {
        app.core.need_proof(&person)?;
    }
    app.core.edit_worker(caller(&person), id.clone(), edit, seen).await?;
    Ok(Json(app.core.worker_page(&id).await?))
}

const DRAIN: Doc = Doc {
    problems: &["worker_not_found", "out_of_range", "too_much"],
    ..Doc::of("drainWorker", "Lets a worker finish what it has and take nothing new.")
};

async fn drain(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    OptionalJson(drain): OptionalJson<DrainWorker>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.core.drain_worker(caller(&person), id.clone(), drain).await?;
    Ok(Json(app.core.worker_page(&id).await?))
}

const RESUME: Doc = Doc { problems: &["worker_not_found"], ..Doc::of("resumeWorker", "Undoes a drain.") };

async fn resume(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.core.resume_worker(caller(&person), id.clone()).await?;
    Ok(Json(app.core.worker_page(&id).await?))
}

const ROTATE: Doc = Doc {
    detail: "The old one opens nothing from then on, and the worker's streams end, unless an overlap is asked for. The \
             token is shown this once.",
    problems: &["worker_not_found", "out_of_range"],
    ..Doc::of("rotateWorkerToken", "Gives a worker a new token.")
};

async fn rotate(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Path(id): Path<String>,
    OptionalJson(rotate): OptionalJson<RotateToken>,
) -> Result<Json<CreatedWorker>, ApiError> {
    let rotated = app.core.rotate_token(caller(&person), worker_id(&id)?, rotate).await?;
    Ok(Json(created_view(&address(&app, scheme, &headers), rotated)))
}

/// A worker's id from a path.
pub fn worker_id(text: &str) -> Result<WorkerId, ApiError> {
    WorkerId::parse(text).map_err(|_| ApiError::bad_id("worker"))
}

/// A new worker with the command that starts its agent.
pub fn created_view(address: &Address, created: crate::service::workers::Created) -> CreatedWorker {
    let persistent = created.worker.kind == Some(app::domain::worker::Kind::Persistent);
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
        token_unused_ends_at: created.unused_ends_at,
        connection_command,
    }
}
