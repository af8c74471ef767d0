//! What agents, and trainers with a job token, send about one attempt.

use app::protocol::configs::Bundle;
use app::protocol::secrets::JobSecrets;
use app::protocol::status::ArtifactKind;
use app::protocol::worker::{Accepted, LogAck, ProgressReport, StatusReport, UploadProgress, Uploaded};
use axum::body::{Body as RawBody, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::TryStreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

use super::agent::actor;
use crate::files::logs::Chunk;
use crate::http::access::JobKey;
use crate::http::address::{Path, Query};
use crate::http::json::{Json as Body, body};
use crate::http::openapi::doc::{Answer, Content, Doc, Header};
use crate::http::pace::was_too_slow;
use crate::http::problem::ApiError;
use crate::http::request::caller_named;
use crate::service::artifacts::Announced;
use crate::service::configs::bundle_bytes;
use crate::service::refusal::Refusal;
use crate::service::uploads::Whole;
use crate::state::App;

/// Which attempt.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Of {
    /// Which attempt; left out, the one that the token stands for.
    pub attempt: Option<u32>,
}

/// Which attempt, and where in its log.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Piece {
    /// Which attempt; left out, the one that the token stands for.
    attempt: Option<u32>,
    /// Where the piece begins, in bytes.
    #[serde(default)]
    offset: u64,
    /// How many bytes before that the worker had to drop, because it had no room to keep them: at least 4096. The log goes
    /// on at `offset`, with a mark in words before it.
    dropped: Option<u64>,
}

/// Which attempt, and what it made.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Made {
    /// Which attempt; left out, the one that the token stands for.
    attempt: Option<u32>,
    /// What kind of file it is.
    kind: Option<ArtifactKind>,
    /// Where this piece of it begins, in bytes; left out, the body is all of it.
    offset: Option<u64>,
    /// How many bytes all of it has; to be given with `offset`.
    size: Option<u64>,
}

/// What becomes of a report about an attempt that is not the reporter's.
pub const FENCED: &[&str] = &["old_attempt", "not_your_attempt", "job_ended"];

/// See [`status`].
pub const STATUS: Doc = Doc {
    problems: &["old_attempt", "not_your_attempt", "job_ended", "invalid_status", "out_of_range", "too_much"],
    ..Doc::of("reportStatus", "Reports where an attempt stands.")
};

/// `POST /api/workers/job/{id}/status`
pub async fn status(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Body(report): Body<StatusReport>,
) -> Result<Json<Accepted>, ApiError> {
    let subject = key.reporter(&id, report.attempt.map(|attempt| attempt.0))?;
    app.core.report_status(caller_named(actor(&subject.worker)), subject, report).await?;
    Ok(Json(Accepted { success: true }))
}

/// See [`progress`].
pub const PROGRESS: Doc = Doc {
    problems: &["old_attempt", "not_your_attempt", "job_ended", "too_much", "out_of_range", "disk_full"],
    ..Doc::of("reportProgress", "Reports steps, losses and other numbers of an attempt.")
};

/// `POST /api/workers/job/{id}/progress`
pub async fn progress(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Body(report): Body<ProgressReport>,
) -> Result<Json<Accepted>, ApiError> {
    let subject = key.subject(&id, Some(report.attempt.0))?;
    app.core.report_progress(caller_named(actor(&subject.worker)), subject, report).await?;
    Ok(Json(Accepted { success: true }))
}

/// See [`logs`].
pub const LOGS: Doc = Doc {
    detail: "Pieces that are there already are passed over; the answer says how much is safe.",
    body: Some(Content::Bytes(&["application/octet-stream"])),
    problems: &[
        "old_attempt",
        "not_your_attempt",
        "job_ended",
        "log_gap",
        "out_of_range",
        "body_too_large",
        "broken_body",
        "too_much",
        "disk_full",
        "files_unavailable",
    ],
    ..Doc::of("appendLog", "Sends a piece of an attempt's log, by its offset in bytes.")
};

/// `PUT /api/workers/job/{id}/logs?attempt=&offset=`
pub async fn logs(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(Piece { attempt, offset, dropped }): Query<Piece>,
    request: Request,
) -> Result<Json<LogAck>, ApiError> {
    let subject = key.subject(&id, attempt)?;
    let bytes: Bytes = body(request, &app).await?;
    let durable = app.core.append_log(&subject, Chunk { offset, dropped, bytes }).await?;
    Ok(Json(LogAck { durable }))
}

/// See [`artifact`].
pub const ARTIFACT: Doc = Doc {
    detail: "A large file may come in pieces, with `offset` and `size`: a piece that is there already is passed over, and \
             the last one stores the file.",
    body: Some(Content::Bytes(&["application/octet-stream"])),
    headers: &[Header {
        name: "X-Content-Sha256",
        about: "The SHA-256 that the bytes must have, in hex. Of a file in pieces it is that of the whole, and must be given.",
    }],
    problems: &[
        "old_attempt",
        "not_your_attempt",
        "job_ended",
        "invalid_path",
        "upload_refused",
        "upload_gap",
        "out_of_range",
        "too_much",
        "files_unavailable",
        "limit_reached",
        "disk_full",
    ],
    ..Doc::of("putArtifact", "Stores a file that an attempt made.")
};

/// `PUT /api/workers/job/{id}/artifacts/{path}`
pub async fn artifact(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path((id, path)): Path<(String, String)>,
    Query(Made { attempt, kind, offset, size }): Query<Made>,
    headers: HeaderMap,
    content: RawBody,
) -> Result<Json<Uploaded>, ApiError> {
    let subject = key.subject(&id, attempt)?;
    let limit = app.core.policy.artifact_limit;
    let announced_size = HttpBody::size_hint(&content).lower();
    if announced_size > limit {
        let what = format!("it is larger than {limit} bytes");
        return Err(Refusal::Upload { what, too_large: true, kept: 0 }.into());
    }
    let sha256 = headers.get("x-content-sha256").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let announced = Announced { path, kind: kind.unwrap_or(ArtifactKind::Other), sha256, size: announced_size };
    let caller = caller_named(actor(&subject.worker));
    let mut slow = false;
    let content = content.into_data_stream().inspect_err(|error| slow |= was_too_slow(error));
    let put = match offset {
        None => app.core.put_artifact(caller, subject, announced, content).await.map(Uploaded::Stored),
        Some(offset) => app.core.put_piece(caller, subject, announced, (offset, size), content).await,
    };
    // Not the file's fault: it may be sent again.
    put.map(Json).map_err(|refusal| if slow { ApiError::body_too_slow() } else { refusal.into() })
}

/// Which file.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Meant {
    /// Which attempt; left out, the one that the token stands for.
    attempt: Option<u32>,
    /// How many bytes the whole file has.
    size: Option<u64>,
    /// The SHA-256 of the whole file, in hex.
    sha256: Option<String>,
}

/// See [`uploaded`].
pub const UPLOADED: Doc = Doc {
    problems: &[
        "old_attempt",
        "not_your_attempt",
        "job_ended",
        "invalid_path",
        "upload_refused",
        "out_of_range",
        "files_unavailable",
    ],
    ..Doc::of("getUpload", "Says how much of a file has arrived that is sent in pieces.")
};

/// `GET /api/workers/job/{id}/artifacts/{path}?attempt=&size=&sha256=`
pub async fn uploaded(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path((id, path)): Path<(String, String)>,
    Query(Meant { attempt, size, sha256 }): Query<Meant>,
) -> Result<Json<UploadProgress>, ApiError> {
    let subject = key.subject(&id, attempt)?;
    Ok(Json(app.core.upload_progress(&subject, path, Whole { size, sha256 }).await?))
}

/// See [`bundle`].
pub const BUNDLE: Doc = Doc {
    answers: &[Answer::json::<Bundle>(200, "The files, as text by path.")],
    problems: FENCED,
    ..Doc::of("getBundle", "Gives the configuration's files, as they were when the job was submitted.")
};

/// `GET /api/workers/job/{id}/bundle`
pub async fn bundle(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(Of { attempt }): Query<Of>,
) -> Result<Response, ApiError> {
    let subject = key.subject(&id, attempt)?;
    let config = app.core.bundle(&subject).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bundle_bytes(&config.files)).into_response())
}

/// See [`secrets`].
pub const SECRETS: Doc = Doc {
    answers: &[Answer::json::<JobSecrets>(200, "Variables for the trainer's environment.")],
    problems: &["old_attempt", "not_your_attempt", "job_ended", "secret_gone", "secret_unreadable"],
    ..Doc::of("takeSecrets", "Gives an attempt the secrets of its job, which is on record.")
};

/// `POST /api/workers/job/{id}/secrets`: taking them is on record.
pub async fn secrets(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(Of { attempt }): Query<Of>,
) -> Result<Response, ApiError> {
    let subject = key.subject(&id, attempt)?;
    let caller = caller_named(actor(&subject.worker));
    let given = app.core.job_secrets(caller, subject).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(given)).into_response())
}
