//! A job's log by its lines.

use app::protocol::logs::{LogLines, LogLinesQuery, LogMatches, LogSearchQuery};
use axum::extract::State;
use axum::{Extension, Json};

use super::job_id;
use crate::http::address::{Path, Query};
use crate::http::openapi::doc::Doc;
use crate::http::problem::ApiError;
use crate::service::access::Person;
use crate::state::App;

/// What both can answer.
const PROBLEMS: &[&str] =
    &["attempt_not_found", "files_unavailable", "invalid_pattern", "out_of_range", "pattern_too_costly"];

/// See [`lines`].
pub const LINES: Doc = Doc {
    detail: "A line that was written over, as by a progress bar, is told as it was written last. `unmarked_from` says \
             from which line on `q` was not looked for, if marking took too long.",
    problems: PROBLEMS,
    ..Doc::of("readLogLines", "Tells lines of an attempt's log by their numbers, with what is looked for marked.")
};

/// `GET /api/queue/{id}/logs/lines`
pub async fn lines(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Query(query): Query<LogLinesQuery>,
) -> Result<Json<LogLines>, ApiError> {
    Ok(Json(app.core.log_lines(&person.name, &job_id(&id)?, query).await?))
}

/// See [`search`].
pub const SEARCH: Doc = Doc {
    detail: "One answer is for as much of the log as can be read in a moment: `next` says where to go on. Regular \
             expressions have the syntax of Rust's `regex`; `\\b` and `\\B` know the letters of ASCII.",
    problems: PROBLEMS,
    ..Doc::of("searchLog", "Finds the lines of an attempt's log that have a text, or match a regular expression.")
};

/// `GET /api/queue/{id}/logs/search`
pub async fn search(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(id): Path<String>,
    Query(query): Query<LogSearchQuery>,
) -> Result<Json<LogMatches>, ApiError> {
    Ok(Json(app.core.search_log(&person.name, &job_id(&id)?, query).await?))
}
