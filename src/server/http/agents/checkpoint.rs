//! Checkpoints of an attempt and of earlier ones.

use std::ops::Range;

use app::protocol::agents::{ReportResponse, ResumeCheckpoint};
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use axum::body::Body as RawBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::job::{AttemptParams, REJECTED_ATTEMPT};
use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::{caller_from_actor, worker_actor};
use crate::http::edge::request_headers::header_text;
use crate::http::guards::JobAuth;
use crate::http::operation::doc::{ContentDoc, ETAG_HEADER, HeaderDoc, OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;

pub const COMPLETE_CHECKPOINT: OperationDoc = OperationDoc {
    description: "Sent after the last file, because an incomplete checkpoint cannot be resumed from.",
    problems: &[
        "stale_attempt",
        "not_your_attempt",
        "job_ended",
        "checkpoint_incomplete",
        "invalid_path",
        "out_of_range",
        "too_large",
    ],
    ..OperationDoc::new("noteCheckpoint", "Completes a checkpoint whose files were uploaded.")
};

/// `POST /api/workers/job/{id}/checkpoint?attempt=`
pub async fn complete_checkpoint(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Query(params): Query<AttemptParams>,
    Body(completed): Body<CompletedCheckpoint>,
) -> Result<Json<ReportResponse>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, params.attempt)?;
    app.services
        .artifacts
        .record_checkpoint(caller_from_actor(worker_actor(&attempt_ref.worker)), attempt_ref, completed)
        .await?;
    Ok(Json(ReportResponse { success: true }))
}

pub const RESUME_CHECKPOINT: OperationDoc = OperationDoc {
    problems: REJECTED_ATTEMPT,
    ..OperationDoc::new(
        "getEarlierCheckpoint",
        "Returns the checkpoint to resume from; its name is empty if there is none.",
    )
};

/// `GET /api/workers/job/{id}/checkpoint?attempt=`
pub async fn resume_checkpoint(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Query(params): Query<AttemptParams>,
) -> Result<Json<ResumeCheckpoint>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, params.attempt)?;
    Ok(Json(app.services.artifacts.resume_checkpoint(&attempt_ref).await?))
}

/// Requests a part of a file.
const RANGE_HEADER: HeaderDoc =
    HeaderDoc { name: "Range", description: "`bytes=A-` or `bytes=A-B`: requests only these bytes." };
const BYTES: ContentDoc = ContentDoc::Bytes(&["application/octet-stream"]);

pub const RESUME_FILE: OperationDoc = OperationDoc {
    headers: &[RANGE_HEADER],
    responses: &[
        ResponseDoc { headers: &[ETAG_HEADER], ..ResponseDoc::new(200, "The file.", BYTES) },
        ResponseDoc { headers: &[ETAG_HEADER], ..ResponseDoc::new(206, "The requested bytes.", BYTES) },
    ],
    problems: &[
        "stale_attempt",
        "not_your_attempt",
        "job_ended",
        "artifact_not_found",
        "invalid_path",
        "range_not_satisfiable",
        "files_unavailable",
    ],
    ..OperationDoc::new("getEarlierCheckpointFile", "Returns a file of the checkpoint to resume from.")
};

/// `GET /api/workers/job/{id}/checkpoint/{path}?attempt=`
pub async fn resume_file(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path((id, path)): Path<(String, String)>,
    Query(params): Query<AttemptParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let attempt_ref = auth.access_attempt(&id, params.attempt)?;
    let resume_file = app.services.artifacts.resume_file(&attempt_ref, &path).await?;
    let (size, etag) = (resume_file.file.size_bytes, format!("\"{}\"", resume_file.file.sha256));
    let etag_matches = header_text(&headers, "if-range").is_none_or(|known| known == etag);
    let requested_range = header_text(&headers, "range")
        .filter(|_| etag_matches)
        .map_or(RequestedRange::All, |range| parse_range(range, size));
    let (status, range) = match requested_range {
        RequestedRange::All => (StatusCode::OK, 0..size),
        RequestedRange::Bytes(range) => (StatusCode::PARTIAL_CONTENT, range),
        RequestedRange::Unsatisfiable => return Err(ApiError::range_not_satisfiable(size)),
    };
    let response_headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
        (header::ETAG, etag),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let content_range = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| [(header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1))]);
    let body = if range.is_empty() { RawBody::empty() } else { RawBody::from_stream(resume_file.bytes(range).await?) };
    let mut response = (status, response_headers, body).into_response();
    if let Some([(name, value)]) = content_range
        && let Ok(value) = value.parse()
    {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    /// All of it; also for a range that cannot be parsed.
    All,
    /// A range of bytes.
    Bytes(Range<u64>),
    /// A range that begins after the end of the file.
    Unsatisfiable,
}

fn parse_range(range: &str, size: u64) -> RequestedRange {
    let bounds = range.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let number = |text: &str| text.parse::<u64>().ok();
    match bounds.map(|(from, to)| (number(from), to, number(to))) {
        Some((Some(from), "", _)) if from < size => RequestedRange::Bytes(from..size),
        Some((Some(from), _, Some(to))) if from <= to && from < size => {
            RequestedRange::Bytes(from..size.min(to.saturating_add(1)))
        }
        Some((Some(from), "", _)) if from >= size => RequestedRange::Unsatisfiable,
        Some((Some(from), _, Some(to))) if from <= to => RequestedRange::Unsatisfiable,
        _ => RequestedRange::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let rows = [
            ("bytes=0-", RequestedRange::Bytes(0..10)),
            ("bytes=4-", RequestedRange::Bytes(4..10)),
            ("bytes=4-4", RequestedRange::Bytes(4..5)),
            ("bytes=4-99", RequestedRange::Bytes(4..10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=10-12", RequestedRange::Unsatisfiable),
            ("bytes=0-18446744073709551615", RequestedRange::Bytes(0..10)),
            ("bytes=5-4", RequestedRange::All),
            ("bytes=-4", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("lines=0-1", RequestedRange::All),
            ("bytes=", RequestedRange::All),
        ];
        for (range, expected) in rows {
            assert_eq!(parse_range(range, 10), expected, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), RequestedRange::Unsatisfiable);
    }
}
