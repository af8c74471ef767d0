//! `/api/queue`: jobs.

mod files;

use app::domain::ids::JobId;
use app::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery, SubmitJob, Submitted};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
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
        .route("/queue/{id}/logs", get(files::logs))
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
    Body(submit): Body<SubmitJob>,
) -> Result<(StatusCode, Json<Submitted>), ApiError> {
    let job = app.core.submit(caller(person.name), submit).await?;
    let view = app.core.job_view(&job.id).await?;
    let submitted = Submitted {
        success: true,
        job_id: job.id.clone(),
        status: view.status,
        queue_position: view.queue_position,
        allocated_worker_id: job.live_lease().map(|lease| lease.worker.clone()),
    };
    Ok((StatusCode::CREATED, Json(submitted)))
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
