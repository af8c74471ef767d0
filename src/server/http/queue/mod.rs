//! `/api/queue`: jobs.

mod files;
mod follow;
mod log_lines;
mod series;

use app::domain::access::Permission;
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::queue::DEFAULT_PRIORITY;
use app::domain::trace::Trace;
use app::protocol::explain::ExplanationView;
use app::protocol::queue::{JobCounts, JobView, JobsPage, JobsQuery};
use app::protocol::status::BulkAction;
use app::protocol::submit::{Previewed, RetryJob, SetPriority, SubmitJob, Submitted};
use app::protocol::workers::FleetLabels;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::address::{Path, Query};
use super::bulk;
use super::conditional::{IfNoneMatch, Listed, Tagged};
use super::json::{Created, Json as Body, OptionalJson};
use super::limits;
use super::openapi::doc::{Answer, Doc, IDEMPOTENCY_KEY, TRACEPARENT, TRACERESPONSE};
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let submits = Needs::To(Permission::JobSubmit);
    Routes::new(app, "Jobs")
        .get("/queue", Needs::SeeJobs, LIST, list)
        .get("/queue/stats", Needs::SeeJobs, STATS, stats)
        .get("/queue/labels", submits, LABELS, labels)
        .post("/queue/submit", submits, SUBMIT, submit)
        .get("/queue/{id}", Needs::SeeJob, SHOW, show)
        .post("/queue/bulk/cancel", Needs::CancelJob, bulk::CANCEL, bulk::of(BulkAction::Cancel))
        .post("/queue/bulk/retry", Needs::SeeJobAnd(Permission::JobSubmit), bulk::RETRY, bulk::of(BulkAction::Retry))
        .post("/queue/{id}/cancel", Needs::CancelJob, CANCEL, cancel)
        .post("/queue/{id}/retry", Needs::SeeJobAnd(Permission::JobSubmit), RETRY, retry)
        .post("/queue/{id}/priority", Needs::SeeJobAnd(Permission::QueueManage), SET_PRIORITY, set_priority)
        .get("/queue/{id}/explain", Needs::SeeJob, EXPLAIN, explain)
        .get("/queue/{id}/config", Needs::SeeJobAnd(Permission::ConfigView), files::CONFIG, files::config)
        .get("/queue/{id}/logs", Needs::SeeJob, files::LOGS, files::logs)
        .get("/queue/{id}/logs/lines", Needs::SeeJob, log_lines::LINES, log_lines::lines)
        .get("/queue/{id}/logs/search", Needs::SeeJob, log_lines::SEARCH, log_lines::search)
        .get("/queue/{id}/events", Needs::SeeJob, files::EVENTS, files::events)
        .get("/queue/{id}/progress", Needs::SeeJob, series::PROGRESS, series::progress)
        .get("/queue/{id}/metrics", Needs::SeeJob, series::METRICS, series::metrics)
        .get("/queue/{id}/gpus", Needs::SeeJob, series::GPUS, series::gpus)
        .get("/queue/{id}/artifacts", Needs::SeeJob, files::ARTIFACTS, files::artifacts)
        .get("/queue/{id}/artifacts/{*path}", Needs::SeeJob, files::DOWNLOAD, files::download)
        .within(|router| limits::bounded(router, limits::API))
}

const LIST: Doc = Doc {
    problems: &["out_of_range"],
    ..Doc::of("listJobs", "Lists jobs, newest first: all of them, or those of one's own.")
};

async fn list(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Query(query): Query<JobsQuery>,
    known: IfNoneMatch,
) -> Result<Listed<JobsPage>, ApiError> {
    Ok(known.listed(app.core.jobs_page(&person, &query).await?))
}

const STATS: Doc = Doc::of("countJobs", "Counts jobs by status.");

async fn stats(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<JobCounts>, ApiError> {
    Ok(Json(app.core.job_counts(&person).await?))
}

const LABELS: Doc = Doc::of("listFleetLabels", "Lists the labels that workers have, for a submit to choose from.");

async fn labels(State(app): State<App>) -> Result<Json<FleetLabels>, ApiError> {
    Ok(Json(app.core.fleet_labels().await?))
}

const SUBMIT: Doc = Doc {
    detail: "A priority above 10 takes `queue.manage`. What no worker there is can take is accepted all the same, and \
             explained (`/api/queue/{id}/explain`).",
    headers: &[IDEMPOTENCY_KEY, TRACEPARENT],
    answers: &[
        Answer { headers: &[TRACERESPONSE], ..Answer::json::<Submitted>(201, "Submitted.") },
        Answer::json::<Previewed>(200, "With `dry_run`: what would become of it."),
    ],
    problems: &[
        "config_not_found",
        "config_changed",
        "secret_not_found",
        "disk_full",
        "limit_reached",
        "out_of_range",
        "invalid_labels",
        "invalid_name",
        "too_much",
        "idempotency_key_reused",
    ],
    ..Doc::of("submitJob", "Submits a job, or says what would become of it.")
};

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
    let job = app.core.submit(caller(&person), submit, idempotency_key(&headers)).await?;
    created(&app, &job).await
}

const RETRY: Doc = Doc {
    detail: "It takes the same revision of the configuration. Of somebody else's job, the new one is given those of its \
             secrets that are shared; the caller's own have to be named.",
    headers: &[IDEMPOTENCY_KEY, TRACEPARENT],
    answers: &[Answer { headers: &[TRACERESPONSE], ..Answer::json::<Submitted>(201, "Submitted.") }],
    problems: &[
        "job_not_ended",
        "config_not_found",
        "secret_not_found",
        "too_much",
        "disk_full",
        "limit_reached",
        "idempotency_key_reused",
        "out_of_range",
    ],
    ..Doc::of("retryJob", "Submits a job that has ended once more, as a new one.")
};

async fn retry(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    headers: HeaderMap,
    OptionalJson(retry): OptionalJson<RetryJob>,
) -> Result<Response, ApiError> {
    let job = app.core.retry(caller(&person), job_id(&id)?, retry, idempotency_key(&headers)).await?;
    created(&app, &job).await
}

/// The answer to whoever has submitted this. `traceresponse` says where it stands in a trace, as the W3C wants it said.
async fn created(app: &App, job: &Job) -> Result<Response, ApiError> {
    let trace = job.trace.as_ref();
    tracing::info!(job = %job.id, trace_id = trace.map(Trace::id), "submitted");
    let mut answer = Created(app.core.submitted(&job.id).await?).into_response();
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(&trace.to_string()).ok()) {
        answer.headers_mut().insert(HeaderName::from_static(TRACERESPONSE.name), value);
    }
    Ok(answer)
}

const SET_PRIORITY: Doc = Doc {
    problems: &["job_not_queued", "job_ended", "out_of_range"],
    ..Doc::of("setJobPriority", "Says how urgent a waiting job is.")
};

async fn set_priority(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Body(SetPriority { priority }): Body<SetPriority>,
) -> Result<Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    app.core.set_priority(caller(&person), id.clone(), priority).await?;
    Ok(Json(app.core.job_view(&id).await?))
}

const EXPLAIN: Doc =
    Doc::of("explainJob", "Says why a job waits, worker by worker, and the nearest change that would help.");

async fn explain(State(app): State<App>, Path(id): Path<String>) -> Result<Json<ExplanationView>, ApiError> {
    Ok(Json(app.core.explain(&job_id(&id)?).await?))
}

const SHOW: Doc = Doc::of("getJob", "Shows a job with its attempts.");

async fn show(State(app): State<App>, Path(id): Path<String>, known: IfNoneMatch) -> Result<Tagged<JobView>, ApiError> {
    Ok(known.tagged(None, app.core.job_detail(&job_id(&id)?).await?))
}

const CANCEL: Doc = Doc {
    detail: "What runs is told to stop, and the job has ended once it has. Cancelling again changes nothing.",
    problems: &["job_ended"],
    ..Doc::of("cancelJob", "Cancels a job.")
};

async fn cancel(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    app.core.cancel(caller(&person), id.clone()).await?;
    Ok(Json(app.core.job_view(&id).await?))
}

pub fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    headers.get("idempotency-key").map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned())
}

/// A job's id from a path.
pub fn job_id(text: &str) -> Result<JobId, ApiError> {
    JobId::parse(text).map_err(|_| ApiError::bad_id("job"))
}
