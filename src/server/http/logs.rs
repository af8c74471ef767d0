//! Lines of a job's log.

use app::protocol::jobs::log_search::{JobLogsPage, JobLogsQuery};
use app::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

/// Problems of both routes.
const PROBLEMS: &[&str] =
    &["attempt_not_found", "files_unavailable", "invalid_pattern", "out_of_range", "pattern_too_costly"];

pub const LINES: OperationDoc = OperationDoc {
    description: "An overwritten line, as of a progress bar, is returned in its last state. `unmarked_from` is the first \
             line in which `q` was not marked, if marking took too long.",
    problems: PROBLEMS,
    ..OperationDoc::new("readLogLines", "Returns lines of an attempt's log by number, with matches marked.")
};

/// `GET /api/queue/{id}/logs/lines`
pub async fn lines(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Query(query): Query<LogLinesQuery>,
) -> Result<Json<LogLines>, ApiError> {
    Ok(Json(app.services.logs.log_lines(&principal.name, &job_id(&id)?, query).await?))
}

pub const SEARCH: OperationDoc = OperationDoc {
    description: "Each response covers a part of the log: `next` is where to continue. Regular \
             expressions have the syntax of Rust's `regex`; `\\b` and `\\B` are ASCII only.",
    problems: PROBLEMS,
    ..OperationDoc::new("searchLog", "Searches an attempt's log for a text or a regular expression.")
};

/// `GET /api/queue/{id}/logs/search`
pub async fn search(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    Query(query): Query<LogSearchQuery>,
) -> Result<Json<LogMatches>, ApiError> {
    Ok(Json(app.services.logs.search_log(&principal.name, &job_id(&id)?, query).await?))
}

pub const SEARCH_JOBS: OperationDoc = OperationDoc {
    description: "Reads the logs of the newest attempts from their start, the newest jobs first, and returns the first three matching \
             lines of each job. Each response covers some of the jobs: continue with `next_cursor`.",
    problems: &["files_unavailable", "invalid_pattern", "invalid_search", "out_of_range", "pattern_too_costly"],
    ..OperationDoc::new("searchJobLogs", "Searches the logs of all jobs, or of those that match a search.")
};

/// `GET /api/queue/logs/search`
pub async fn search_jobs(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<JobLogsQuery>,
) -> Result<Json<JobLogsPage>, ApiError> {
    Ok(Json(app.services.logs.search_job_logs(&principal, &query).await?))
}
