//! Reports about one attempt, by agents, and by trainers with a job token.

use app::protocol::agents::{LogAck, ProgressReport, ReportResponse, StatusReport, UploadProgress, UploadResponse};
use app::protocol::configs::ConfigBundle;
use app::protocol::secrets::JobSecrets;
use app::protocol::status::ArtifactKind;
use axum::body::{Body as RawBody, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::TryStreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::logs::IncomingLogChunk;
use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::json::{Json as Body, read_body};
use crate::http::edge::min_transfer_rate::is_body_too_slow;
use crate::http::edge::request::{caller_from_actor, worker_actor};
use crate::http::guards::JobAuth;
use crate::http::operation::doc::{ContentDoc, HeaderDoc, OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::artifacts::UploadAnnouncement;
use crate::service::artifacts::uploads::ExpectedFile;
use crate::service::configs::bundle_bytes;
use crate::service::error::{ServiceError, UploadRejection};

/// Query parameters that name an attempt.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AttemptParams {
    /// Attempt number [default: the one of the token].
    pub attempt: Option<u32>,
}

/// Query parameters of a log chunk.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LogChunkParams {
    /// Attempt number [default: the one of the token].
    attempt: Option<u32>,
    /// Offset of the chunk in bytes.
    #[serde(default)]
    offset: u64,
    /// Number of bytes before the chunk that the worker had to drop for lack of disk space, at least 4096. The log
    /// continues at `offset` after a text that marks the gap.
    dropped: Option<u64>,
}

/// Query parameters of an artifact upload.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ArtifactParams {
    /// Attempt number [default: the one of the token].
    attempt: Option<u32>,
    /// The kind of file.
    kind: Option<ArtifactKind>,
    /// Offset of this chunk in bytes; without it the body is the whole file.
    offset: Option<u64>,
    /// Size of the whole file in bytes; required with `offset`.
    size: Option<u64>,
}

/// Problems of a report about an attempt that is not the reporter's.
pub const REJECTED_ATTEMPT: &[&str] = &["stale_attempt", "not_your_attempt", "job_ended"];

pub const STATUS: OperationDoc = OperationDoc {
    problems: &["stale_attempt", "not_your_attempt", "job_ended", "invalid_status", "out_of_range", "too_large"],
    ..OperationDoc::new("reportStatus", "Reports the status of an attempt.")
};

/// `POST /api/workers/job/{id}/status`
pub async fn status(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Body(report): Body<StatusReport>,
) -> Result<Json<ReportResponse>, ApiError> {
    let attempt_ref = auth.report_on_attempt(&id, report.attempt.map(|attempt| attempt.0))?;
    app.services
        .agents
        .report_status(caller_from_actor(worker_actor(&attempt_ref.worker)), attempt_ref, report)
        .await?;
    Ok(Json(ReportResponse { success: true }))
}

pub const PROGRESS: OperationDoc = OperationDoc {
    problems: &["stale_attempt", "not_your_attempt", "job_ended", "too_large", "out_of_range", "disk_full"],
    ..OperationDoc::new("reportProgress", "Reports metric points of an attempt.")
};

/// `POST /api/workers/job/{id}/progress`
pub async fn progress(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Body(report): Body<ProgressReport>,
) -> Result<Json<ReportResponse>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, Some(report.attempt.0))?;
    app.services
        .agents
        .report_progress(caller_from_actor(worker_actor(&attempt_ref.worker)), attempt_ref, report)
        .await?;
    Ok(Json(ReportResponse { success: true }))
}

pub const LOGS: OperationDoc = OperationDoc {
    description: "Chunks that were stored before are skipped; the response contains the stored size.",
    body: Some(ContentDoc::Bytes(&["application/octet-stream"])),
    problems: &[
        "stale_attempt",
        "not_your_attempt",
        "job_ended",
        "log_gap",
        "out_of_range",
        "body_too_large",
        "incomplete_body",
        "too_large",
        "disk_full",
        "files_unavailable",
    ],
    ..OperationDoc::new("appendLog", "Uploads a chunk of an attempt's log.")
};

/// `PUT /api/workers/job/{id}/logs?attempt=&offset=`
pub async fn logs(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Query(LogChunkParams { attempt, offset, dropped }): Query<LogChunkParams>,
    request: Request,
) -> Result<Json<LogAck>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, attempt)?;
    let bytes: Bytes = read_body(request, &app).await?;
    let durable = app.services.logs.append_log(&attempt_ref, IncomingLogChunk { offset, dropped, bytes }).await?;
    Ok(Json(LogAck { durable }))
}

pub const ARTIFACT: OperationDoc = OperationDoc {
    description: "A large file can be sent in chunks, with `offset` and `size`: a chunk that was stored before is skipped, and \
             the last one stores the file.",
    body: Some(ContentDoc::Bytes(&["application/octet-stream"])),
    headers: &[HeaderDoc {
        name: "X-Content-Sha256",
        description: "SHA-256 of the whole file in hex; required for a file in chunks.",
    }],
    problems: &[
        "stale_attempt",
        "not_your_attempt",
        "job_ended",
        "invalid_path",
        "upload_rejected",
        "upload_gap",
        "out_of_range",
        "too_large",
        "files_unavailable",
        "limit_reached",
        "disk_full",
    ],
    ..OperationDoc::new("putArtifact", "Uploads an artifact of an attempt.")
};

/// `PUT /api/workers/job/{id}/artifacts/{path}`
pub async fn artifact(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path((id, path)): Path<(String, String)>,
    Query(ArtifactParams { attempt, kind, offset, size }): Query<ArtifactParams>,
    headers: HeaderMap,
    content: RawBody,
) -> Result<Json<UploadResponse>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, attempt)?;
    let limit = app.services.context.policy.artifact_limit;
    let expected_size = HttpBody::size_hint(&content).lower();
    if expected_size > limit {
        return Err(ServiceError::Upload { rejection: UploadRejection::TooLarge { limit }, stored_bytes: 0 }.into());
    }
    let sha256 = headers.get("x-content-sha256").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let announcement =
        UploadAnnouncement { path, kind: kind.unwrap_or(ArtifactKind::Other), sha256, size: expected_size };
    let caller = caller_from_actor(worker_actor(&attempt_ref.worker));
    let mut is_slow = false;
    let content = content.into_data_stream().inspect_err(|error| is_slow |= is_body_too_slow(error));
    let result = match offset {
        None => app
            .services
            .artifacts
            .put_artifact(caller, attempt_ref, announcement, content)
            .await
            .map(UploadResponse::Stored),
        Some(offset) => {
            app.services.artifacts.put_chunk(caller, attempt_ref, announcement, (offset, size), content).await
        }
    };
    // The file is valid and may be sent again.
    result.map(Json).map_err(|error| if is_slow { ApiError::body_too_slow() } else { error.into() })
}

/// Query parameters of an upload's state.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UploadParams {
    /// Attempt number [default: the one of the token].
    attempt: Option<u32>,
    /// Size of the whole file in bytes.
    size: Option<u64>,
    /// SHA-256 of the whole file in hex.
    sha256: Option<String>,
}

pub const UPLOAD_PROGRESS: OperationDoc = OperationDoc {
    problems: &[
        "stale_attempt",
        "not_your_attempt",
        "job_ended",
        "invalid_path",
        "upload_rejected",
        "out_of_range",
        "files_unavailable",
    ],
    ..OperationDoc::new("getUpload", "Returns how much of a file in chunks has arrived.")
};

/// `GET /api/workers/job/{id}/artifacts/{path}?attempt=&size=&sha256=`
pub async fn upload_progress(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path((id, path)): Path<(String, String)>,
    Query(UploadParams { attempt, size, sha256 }): Query<UploadParams>,
) -> Result<Json<UploadProgress>, ApiError> {
    let attempt_ref = auth.access_attempt(&id, attempt)?;
    Ok(Json(app.services.artifacts.upload_progress(&attempt_ref, path, ExpectedFile { size, sha256 }).await?))
}

pub const BUNDLE: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::json::<ConfigBundle>(200, "The files, as text by path.")],
    problems: REJECTED_ATTEMPT,
    ..OperationDoc::new("getBundle", "Returns the files of the job's configuration revision.")
};

/// `GET /api/workers/job/{id}/bundle`
pub async fn bundle(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Query(AttemptParams { attempt }): Query<AttemptParams>,
) -> Result<Response, ApiError> {
    let attempt_ref = auth.access_attempt(&id, attempt)?;
    let config = app.services.agents.config_bundle(&attempt_ref).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bundle_bytes(&config.files)).into_response())
}

pub const SECRETS: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::json::<JobSecrets>(200, "Variables for the trainer's environment.")],
    problems: &["stale_attempt", "not_your_attempt", "job_ended", "secret_deleted", "secret_unreadable"],
    ..OperationDoc::new("takeSecrets", "Returns the secrets of an attempt's job; recorded in the audit log.")
};

/// `POST /api/workers/job/{id}/secrets`: recorded in the audit log.
pub async fn secrets(
    State(app): State<AppState>,
    Extension(auth): Extension<JobAuth>,
    Path(id): Path<String>,
    Query(AttemptParams { attempt }): Query<AttemptParams>,
) -> Result<Response, ApiError> {
    let attempt_ref = auth.access_attempt(&id, attempt)?;
    let caller = caller_from_actor(worker_actor(&attempt_ref.worker));
    let secrets = app.services.secrets.job_secrets(caller, attempt_ref).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(secrets)).into_response())
}
