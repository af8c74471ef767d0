//! `/api/queue`: jobs.

mod archive;
mod compare;
mod export;
mod files;
mod follow;
mod metrics_csv;
mod sample_votes;
mod saved_views;
mod series;

use app::domain::access::Permission;
use app::domain::job::Job;
use app::domain::priority::DEFAULT_PRIORITY;
use app::domain::trace_context::TraceContext;
use app::protocol::agents::ReportResponse;
use app::protocol::jobs::explain::ExplanationView;
use app::protocol::jobs::submit::{DescribeJob, RetryJob, SetPriority, SubmitJobResponse, SubmitPreviewResponse};
use app::protocol::jobs::{
    JobColumns, JobCompletions, JobCompletionsQuery, JobCounts, JobGroupsPage, JobView, JobsPage, JobsQuery, SubmitJob,
};
use app::protocol::status::BulkTarget;
use app::protocol::workers::FleetLabels;
use app::ui::localized_explanation::{no_local_worker, summary_sentence, write_explanation};
use app::ui::prefs::Locale;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::bulk;
use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::conditional::{IfNoneMatch, ListResponse, TaggedResponse};
use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::edge::json::{CreatedJson, Json as Body, OptionalJson};
use crate::http::edge::language::ClientLanguage;
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::request_headers::idempotency_key;
use crate::http::operation::doc::{
    IDEMPOTENCY_KEY_HEADER, OperationDoc, ResponseDoc, TRACEPARENT_HEADER, TRACERESPONSE_HEADER,
};
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::jobs::views::SubmitWarning;

pub fn routes(app: &AppState) -> Routes {
    let submit_jobs = Requirement::Permission(Permission::JobSubmit);
    Routes::new(app, "Jobs")
        .get("/queue", Requirement::SeeJobs, LIST, list)
        .get("/queue/stats", Requirement::SeeJobs, STATS, stats)
        .get("/queue/completions", Requirement::SeeJobs, COMPLETIONS, completions)
        .get("/queue/groups", Requirement::SeeJobs, GROUPS, groups)
        .get("/queue/columns", Requirement::SeeJobs, COLUMNS, columns)
        .get("/queue/views", Requirement::SeeJobs, saved_views::LIST, saved_views::list)
        .put("/queue/views/{name}", Requirement::SeeJobs, saved_views::SAVE, saved_views::save)
        .delete("/queue/views/{name}", Requirement::SeeJobs, saved_views::DELETE, saved_views::delete)
        .get("/queue/votes", Requirement::SeeJobs, sample_votes::LIST, sample_votes::list)
        .post("/queue/votes", Requirement::SeeJobs, sample_votes::VOTE, sample_votes::vote)
        .get("/queue/logs/search", Requirement::SeeJobs, super::logs::SEARCH_JOBS, super::logs::search_jobs)
        .get("/queue/compare", Requirement::SeeJobs, compare::COMPARE, compare::compare)
        .get("/queue/export", Requirement::SeeJobs, export::CSV, export::csv)
        .get("/queue/export/json", Requirement::SeeJobs, export::JSON_LINES, export::json_lines)
        .get("/queue/labels", submit_jobs, LABELS, labels)
        .post("/queue/submit", submit_jobs, SUBMIT, submit)
        .get("/queue/{id}", Requirement::SeeJob, SHOW, show)
        .patch("/queue/{id}", Requirement::DescribeJob, DESCRIBE, describe)
        .put("/queue/{id}/star", Requirement::SeeJob, STAR, star)
        .delete("/queue/{id}/star", Requirement::SeeJob, UNSTAR, unstar)
        .merge(bulk::routes(app, "Jobs", BulkTarget::Jobs, "/queue"))
        .post("/queue/{id}/cancel", Requirement::CancelJob, CANCEL, cancel)
        .post("/queue/{id}/retry", Requirement::SeeJobAnd(Permission::JobSubmit), RETRY, retry)
        .post("/queue/{id}/priority", Requirement::SeeJobAnd(Permission::QueueManage), SET_PRIORITY, set_priority)
        .get("/queue/{id}/explain", Requirement::SeeJob, EXPLAIN, explain)
        .get("/queue/{id}/config", Requirement::SeeJobAnd(Permission::ConfigView), files::CONFIG, files::config)
        .get("/queue/{id}/logs", Requirement::SeeJob, files::LOGS, files::logs)
        .get("/queue/{id}/logs/lines", Requirement::SeeJob, super::logs::LINES, super::logs::lines)
        .get("/queue/{id}/logs/search", Requirement::SeeJob, super::logs::SEARCH, super::logs::search)
        .get("/queue/{id}/events", Requirement::SeeJob, files::EVENTS, files::events)
        .get("/queue/{id}/live", Requirement::SeeJob, series::LIVE, series::live)
        .get("/queue/{id}/progress", Requirement::SeeJob, series::PROGRESS, series::progress)
        .get("/queue/{id}/metrics", Requirement::SeeJob, series::METRICS, series::metrics)
        .get("/queue/{id}/metrics.csv", Requirement::SeeJob, metrics_csv::EXPORT, metrics_csv::export)
        .get("/queue/{id}/gpus", Requirement::SeeJob, series::GPUS, series::gpus)
        .get("/queue/{id}/artifacts", Requirement::SeeJob, files::ARTIFACTS, files::artifacts)
        .get("/queue/{id}/artifacts.zip", Requirement::SeeJob, archive::ZIP, archive::zip)
        .get("/queue/{id}/artifacts/{*path}", Requirement::SeeJob, files::DOWNLOAD, files::download)
        .layer(|router| limits::limit_body(router, limits::API))
}

const LIST: OperationDoc = OperationDoc {
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("listJobs", "Lists and searches jobs, newest first: all, or the caller's own.")
};

async fn list(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobsQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<JobsPage>, ApiError> {
    Ok(if_none_match.listed(app.services.jobs.jobs_page(&principal, &query).await?))
}

const GROUPS: OperationDoc = OperationDoc {
    problems: &["invalid_search", "out_of_range"],
    ..OperationDoc::new("groupJobs", "Counts jobs by configuration, user or tag, and by status.")
};

async fn groups(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobsQuery>,
) -> Result<Json<JobGroupsPage>, ApiError> {
    Ok(Json(app.services.jobs.job_groups(&principal, &query).await?))
}

const COMPLETIONS: OperationDoc = OperationDoc {
    description: "Values come from the jobs that the caller may see.",
    ..OperationDoc::new("completeJobSearch", "Completes a search for jobs that is being typed.")
};

async fn completions(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobCompletionsQuery>,
) -> Result<Json<JobCompletions>, ApiError> {
    Ok(Json(app.services.jobs.complete_search(&principal, query.q).await?))
}

const COLUMNS: OperationDoc = OperationDoc {
    description: "Metrics and keys of configurations come from the jobs that the caller may see; keys require \
             `config.view`.",
    ..OperationDoc::new("listJobColumns", "Lists the columns that a list of jobs can show.")
};

async fn columns(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<JobColumns>, ApiError> {
    Ok(Json(app.services.jobs.columns(&principal).await?))
}

const STATS: OperationDoc = OperationDoc::new("countJobs", "Counts jobs by status.");

async fn stats(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<JobCounts>, ApiError> {
    Ok(Json(app.services.jobs.job_counts(&principal).await?))
}

const LABELS: OperationDoc = OperationDoc::new("listFleetLabels", "Lists the labels of workers.");

async fn labels(State(app): State<AppState>) -> Result<Json<FleetLabels>, ApiError> {
    Ok(Json(app.services.workers.fleet_labels().await?))
}

const SUBMIT: OperationDoc = OperationDoc {
    description: "A priority above 10 requires `queue.manage`. A job that no worker matches is accepted, and \
             explained (`/api/queue/{id}/explain`).",
    headers: &[IDEMPOTENCY_KEY_HEADER, TRACEPARENT_HEADER],
    responses: &[
        ResponseDoc { headers: &[TRACERESPONSE_HEADER], ..ResponseDoc::json::<SubmitJobResponse>(201, "Submitted.") },
        ResponseDoc::json::<SubmitPreviewResponse>(200, "With `dry_run`: the preview."),
    ],
    problems: &[
        "config_not_found",
        "config_changed",
        "secret_not_found",
        "team_not_found",
        "not_team_member",
        "disk_full",
        "limit_reached",
        "out_of_range",
        "invalid_labels",
        "invalid_name",
        "too_large",
        "idempotency_key_reused",
    ],
    ..OperationDoc::new("submitJob", "Submits a job, or previews it.")
};

async fn submit(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    ClientLanguage(language): ClientLanguage,
    headers: HeaderMap,
    Body(submit): Body<SubmitJob>,
) -> Result<Response, ApiError> {
    if submit.priority > DEFAULT_PRIORITY {
        principal.require(Permission::QueueManage)?;
    }
    if submit.dry_run {
        let mut preview = app.services.jobs.preview(&principal, &submit).await?;
        write_explanation(&mut preview.explanation, language);
        return Ok(Json(preview).into_response());
    }
    let job = app.services.jobs.submit(caller_from_principal(&principal), submit, idempotency_key(&headers)).await?;
    submitted_response(&app, &job, language).await
}

const RETRY: OperationDoc = OperationDoc {
    description: "It uses the same revision of the configuration. For another user's job, the new one gets its \
             shared secrets only; the caller's own must be named.",
    headers: &[IDEMPOTENCY_KEY_HEADER, TRACEPARENT_HEADER],
    responses: &[ResponseDoc {
        headers: &[TRACERESPONSE_HEADER],
        ..ResponseDoc::json::<SubmitJobResponse>(201, "Submitted.")
    }],
    problems: &[
        "job_not_ended",
        "config_not_found",
        "secret_not_found",
        "too_large",
        "disk_full",
        "limit_reached",
        "idempotency_key_reused",
        "out_of_range",
    ],
    ..OperationDoc::new("retryJob", "Retries a job that has ended, as a new job.")
};

async fn retry(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    ClientLanguage(language): ClientLanguage,
    headers: HeaderMap,
    OptionalJson(retry): OptionalJson<RetryJob>,
) -> Result<Response, ApiError> {
    let job = app
        .services
        .jobs
        .retry(caller_from_principal(&principal), job_id(&id)?, retry, idempotency_key(&headers))
        .await?;
    submitted_response(&app, &job, language).await
}

/// Returns the response to a submit. `traceresponse` contains its trace (W3C Trace Context).
async fn submitted_response(app: &AppState, job: &Job, language: Locale) -> Result<Response, ApiError> {
    let trace = job.trace.as_ref();
    tracing::info!(job = %job.id, trace_id = trace.map(TraceContext::trace_id), "jobs: submitted");
    let (submitted, warning) = app.services.jobs.submit_response(&job.id).await?;
    let warning = warning.map(|warning| match warning {
        SubmitWarning::Unsatisfiable(summary) => summary_sentence(&summary, language),
        SubmitWarning::NoLocalWorker => no_local_worker(language).to_owned(),
    });
    let mut response = CreatedJson(SubmitJobResponse { warning, ..submitted }).into_response();
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(&trace.to_string()).ok()) {
        response.headers_mut().insert(HeaderName::from_static(TRACERESPONSE_HEADER.name), value);
    }
    Ok(response)
}

const SET_PRIORITY: OperationDoc = OperationDoc {
    problems: &["job_not_queued", "job_ended", "out_of_range"],
    ..OperationDoc::new("setJobPriority", "Sets the priority of a queued job.")
};

async fn set_priority(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Body(SetPriority { priority }): Body<SetPriority>,
) -> Result<Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    app.services.jobs.set_priority(caller_from_principal(&principal), id.clone(), priority).await?;
    Ok(Json(app.services.jobs.job_view(&id).await?))
}

const DESCRIBE: OperationDoc = OperationDoc {
    problems: &["out_of_range"],
    ..OperationDoc::new("describeJob", "Changes the name, the tags and the notes of a job.")
};

async fn describe(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Body(describe): Body<DescribeJob>,
) -> Result<Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    app.services.jobs.describe(caller_from_principal(&principal), id.clone(), describe).await?;
    Ok(Json(app.services.jobs.job_detail(&principal, &id).await?))
}

const STAR: OperationDoc = OperationDoc {
    description: "Lists find the jobs that a user has starred: `starred:me`.",
    problems: &["too_large"],
    ..OperationDoc::new("starJob", "Stars a job for the caller.")
};

async fn star(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.jobs.star(&principal, caller_from_principal(&principal), job_id(&id)?, true).await?;
    Ok(Json(ReportResponse { success: true }))
}

const UNSTAR: OperationDoc = OperationDoc::new("unstarJob", "Removes the caller's star of a job.");

async fn unstar(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.jobs.star(&principal, caller_from_principal(&principal), job_id(&id)?, false).await?;
    Ok(Json(ReportResponse { success: true }))
}

const EXPLAIN: OperationDoc = OperationDoc::new(
    "explainJob",
    "Explains why a job is pending, worker by worker, with the nearest change that would help.",
);

async fn explain(
    State(app): State<AppState>,
    Path(id): Path<String>,
    ClientLanguage(language): ClientLanguage,
) -> Result<Json<ExplanationView>, ApiError> {
    let mut explanation = app.services.jobs.explain(&job_id(&id)?).await?;
    write_explanation(&mut explanation, language);
    Ok(Json(explanation))
}

const SHOW: OperationDoc = OperationDoc {
    description: "Its configuration overrides require `config.view`.",
    ..OperationDoc::new("getJob", "Shows a job with its attempts.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    if_none_match: IfNoneMatch,
) -> Result<TaggedResponse<JobView>, ApiError> {
    Ok(if_none_match.tagged(None, app.services.jobs.job_detail(&principal, &job_id(&id)?).await?))
}

const CANCEL: OperationDoc = OperationDoc {
    description: "A running attempt is stopped first; the job ends when it has stopped. Cancelling again has no effect.",
    problems: &["job_ended"],
    ..OperationDoc::new("cancelJob", "Cancels a job.")
};

async fn cancel(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<JobView>, ApiError> {
    let id = job_id(&id)?;
    app.services.jobs.cancel(caller_from_principal(&principal), id.clone()).await?;
    Ok(Json(app.services.jobs.job_view(&id).await?))
}
