//! Checkpoints of an attempt and of earlier ones.

use app::protocol::agents::{ReportResponse, ResumeCheckpoint};
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use axum::body::Body as RawBody;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::job::{AttemptParams, REJECTED_ATTEMPT};
use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::file_part::{CONTENT_RANGE_HEADER, FilePart, IF_RANGE_HEADER, RANGE_HEADER};
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::{caller_from_actor, worker_actor};
use crate::http::guards::JobAuth;
use crate::http::operation::doc::{ContentDoc, ETAG_HEADER, OperationDoc, ResponseDoc};
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

const BYTES: ContentDoc = ContentDoc::Bytes(&["application/octet-stream"]);

pub const RESUME_FILE: OperationDoc = OperationDoc {
    headers: &[RANGE_HEADER, IF_RANGE_HEADER],
    responses: &[
        ResponseDoc { headers: &[ETAG_HEADER], ..ResponseDoc::new(200, "The file.", BYTES) },
        ResponseDoc {
            headers: &[ETAG_HEADER, CONTENT_RANGE_HEADER],
            ..ResponseDoc::new(206, "The requested bytes.", BYTES)
        },
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
    let etag = format!("\"{}\"", resume_file.file.sha256);
    let part = FilePart::requested(&headers, &etag, resume_file.file.size_bytes)?;
    let bytes = RawBody::from_stream(resume_file.bytes(part.range.clone()).await?);
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::ETAG, etag),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, part.response(bytes)).into_response())
}
