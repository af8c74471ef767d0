//! `/api/queue`: jobs.

mod files;
mod follow;

use app::domain::access::Permission;
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::queue::DEFAULT_PRIORITY;
use app::domain::trace::Trace;
use app::protocol::explain::ExplanationView;
use app::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery, SetPriority, SubmitJob};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::json::Json as Body;
use super::limits;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

const TRACERESPONSE: HeaderName = HeaderName::from_static("traceresponse");

/// The routes.
pub fn routes(app: &App) -> Routes {
    let submits = Needs::To(Permission::JobSubmit);
    Routes::new(app)
        .get("/queue", Needs::SeeJobs, list)
        .get("/queue/stats", Needs::SeeJobs, stats)
        .post("/queue/submit", submits, submit)
        .get("/queue/{id}", Needs::SeeJob, show)
        .post("/queue/{id}/cancel", Needs::CancelJob, cancel)
        .post("/queue/{id}/retry", Needs::SeeJobAnd(Permission::JobSubmit), retry)
        .post("/queue/{id}/priority", Needs::SeeJobAnd(Permission::QueueManage), set_priority)
        .get("/queue/{id}/explain", Needs::SeeJob, explain)
        .get("/queue/{id}/logs", Needs::SeeJob, files::logs)
        .get("/queue/{id}/events", Needs::SeeJob, files::events)
        .get("/queue/{id}/progress", Needs::SeeJob, files::progress)
        .get("/queue/{id}/artifacts", Needs::SeeJob, files::artifacts)
        .get("/queue/{id}/artifacts/{*path}", Needs::SeeJob, files::download)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::API)))
}

async fn list(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Query(query): Query<JobsQuery>,
) -> Result<Json<JobsPage>, ApiError> {
    Ok(Json(app.core.jobs_page(&person, &query).await?))
}

async fn stats(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<JobCounts>, ApiError> {
    Ok(Json(app.core.job_counts(&person).await?))
}

async fn submit(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    headers: HeaderMap,
    Body(submit): Body<SubmitJob>,
) -> Result<Response, ApiError> {
    if submit.priority > DEFAULT_PRIORITY {
        person.need(Permission::QueueManage)?;
    }
    if submit.dry_run {
        return Ok(Json(app.core.preview(person.name, &submit).await?).into_response());
    }
    let key = headers.get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    let job = app.core.submit(caller(&person), submit, key).await?;
    created(&app, &job).await
}

async fn retry(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let job = app.core.retry(caller(&person), job_id(&id)?).await?;
    created(&app, &job).await
}

/// The answer to whoever has submitted this. `traceresponse` says where it stands in a trace, as the W3C wants it said.
async fn created(app: &App, job: &Job) -> Result<Response, ApiError> {
    let trace = job.trace.as_ref();
    tracing::info!(job = %job.id, trace_id = trace.map(Trace::id), "submitted");
    let mut answer = (StatusCode::CREATED, Json(app.core.submitted(&job.id).await?)).into_response();
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(&trace.to_string()).ok()) {
        answer.headers_mut().insert(TRACERESPONSE, value);
    }
    Ok(answer)
}

async fn set_priority(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(SetPriority { priority }): Body<SetPriority>,
) -> Result<Json<JobView>, ApiError> {
    let job = app.core.set_priority(caller(&person), job_id(&id)?, priority).await?;
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
    let job = app.core.cancel(caller(&person), job_id(&id)?).await?;
    Ok(Json(app.core.job_view(&job.id).await?))
}

/// A job's id from a path.
pub fn job_id(text: &str) -> Result<JobId, ApiError> {
    JobId::parse(text).map_err(|_| ApiError::bad_id("job"))
}
