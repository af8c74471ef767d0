//! `/api/queue`: jobs.

mod files;
mod follow;

use app::domain::ids::JobId;
use app::protocol::explain::ExplanationView;
use app::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery, SetPriority, SubmitJob, Submitted};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};

use super::access::Person;
use super::json::Json as Body;
use super::limits;
use super::problem::ApiError;
use super::request::caller;
use crate::state::App;

/// The routes.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/queue", get(list))
        .route("/queue/stats", get(stats))
        .route("/queue/submit", post(submit))
        .route("/queue/{id}", get(show))
        .route("/queue/{id}/cancel", post(cancel))
        .route("/queue/{id}/retry", post(retry))
        .route("/queue/{id}/priority", post(set_priority))
        .route("/queue/{id}/explain", get(explain))
        .route("/queue/{id}/logs", get(files::logs))
        .route("/queue/{id}/events", get(files::events))
        .route("/queue/{id}/progress", get(files::progress))
        .route("/queue/{id}/artifacts", get(files::artifacts))
        .route("/queue/{id}/artifacts/{*path}", get(files::download))
        .layer(DefaultBodyLimit::max(limits::API))
}

async fn list(State(app): State<App>, Query(query): Query<JobsQuery>) -> Result<Json<JobsPage>, ApiError> {
    Ok(Json(app.core.jobs_page(&query).await?))
}

async fn stats(State(app): State<App>) -> Result<Json<JobCounts>, ApiError> {
    Ok(Json(app.core.job_counts().await?))
}

async fn submit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    headers: HeaderMap,
    Body(submit): Body<SubmitJob>,
) -> Result<Response, ApiError> {
    if submit.dry_run {
        return Ok(Json(app.core.preview(person.name, &submit).await?).into_response());
    }
    let key = headers.get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    let job = app.core.submit(caller(person.name), submit, key).await?;
    Ok((StatusCode::CREATED, Json(app.core.submitted(&job.id).await?)).into_response())
}

async fn retry(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Submitted>), ApiError> {
    let job = app.core.retry(caller(person.name), job_id(&id)?).await?;
    Ok((StatusCode::CREATED, Json(app.core.submitted(&job.id).await?)))
}

async fn set_priority(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(SetPriority { priority }): Body<SetPriority>,
) -> Result<Json<JobView>, ApiError> {
    let job = app.core.set_priority(caller(person.name), job_id(&id)?, priority).await?;
    Ok(Json(app.core.job_view(&job.id).await?))
}

async fn explain(State(app): State<App>, Path(id): Path<String>) -> Result<Json<ExplanationView>, ApiError> {
    Ok(Json(app.core.explain(&job_id(&id)?).await?))
}

async fn show(State(app): State<App>, Path(id): Path<String>) -> Result<Json<JobView>, ApiError> {
    Ok(Json(app.core.job_detail(&job_id(&id)?).await?))
}

async fn cancel(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let job = app.core.cancel(caller(person.name), job_id(&id)?).await?;
    Ok(Json(app.core.job_view(&job.id).await?))
}

/// A job's id from a path.
pub fn job_id(text: &str) -> Result<JobId, ApiError> {
    JobId::parse(text).map_err(|_| ApiError::bad_id("job"))
}
