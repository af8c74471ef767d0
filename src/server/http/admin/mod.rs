//! `/api/admin`: workers, and people.

mod users;

use app::domain::access::Permission;
use app::domain::ids::WorkerId;
use app::protocol::worker::Accepted;
use app::protocol::workers::{
    CreateWorker, CreatedWorker, DrainWorker, EditWorker, RotateToken, WorkerView, WorkersPage, WorkersQuery,
};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};

use super::arrival::Scheme;
use super::json::{Json as Body, OptionalJson};
use super::limits;
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
    Routes::new(app)
        .get("/admin/workers", workers, list)
        .post("/admin/workers", workers, create)
        .get("/admin/workers/{id}", workers, show)
        .patch("/admin/workers/{id}", workers, edit)
        .delete("/admin/workers/{id}", taking, delete)
        .post("/admin/workers/{id}/drain", workers, drain)
        .post("/admin/workers/{id}/resume", workers, resume)
        .post("/admin/workers/{id}/token", taking, rotate)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::API)))
        .and(users::routes(app))
}

async fn list(State(app): State<App>, Query(query): Query<WorkersQuery>) -> Result<Json<WorkersPage>, ApiError> {
    Ok(Json(app.core.workers_page(&query).await?))
}

async fn create(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    Body(create): Body<CreateWorker>,
) -> Result<(StatusCode, Json<CreatedWorker>), ApiError> {
    let created = app.core.create_worker(caller(&person), create).await?;
    Ok((StatusCode::CREATED, Json(created_view(&address(&app, scheme, &headers), created))))
}

async fn show(State(app): State<App>, Path(id): Path<String>) -> Result<Json<WorkerView>, ApiError> {
    Ok(Json(app.core.worker_page(&worker_id(&id)?).await?))
}

async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.delete_worker(caller(&person), worker_id(&id)?).await?;
    Ok(Json(Accepted { success: true }))
}

async fn edit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(edit): Body<EditWorker>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.core.edit_worker(caller(&person), id.clone(), edit).await?;
    Ok(Json(app.core.worker_page(&id).await?))
}

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

async fn resume(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<WorkerView>, ApiError> {
    let id = worker_id(&id)?;
    app.core.resume_worker(caller(&person), id.clone()).await?;
    Ok(Json(app.core.worker_page(&id).await?))
}

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
    CreatedWorker { worker_id: created.worker.id, token: created.token, name: created.worker.name, connection_command }
}
