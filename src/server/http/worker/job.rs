//! What agents, and trainers with a job token, send about one attempt.

use app::protocol::status::ArtifactKind;
use app::protocol::worker::{Accepted, ArtifactAck, LogAck, ProgressReport, StatusReport};
use axum::body::{Body as RawBody, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use futures_util::TryStreamExt;
use serde::Deserialize;

use super::agent::actor;
use crate::http::access::JobKey;
use crate::http::json::{Json as Body, body};
use crate::http::pace::was_too_slow;
use crate::http::problem::ApiError;
use crate::http::request::caller_named;
use crate::service::artifacts::Announced;
use crate::service::configs::bundle_bytes;
use crate::state::App;

/// Which attempt, and where in its log.
#[derive(Debug, Deserialize)]
pub struct Place {
    attempt: Option<u32>,
    #[serde(default)]
    offset: u64,
    kind: Option<ArtifactKind>,
}

/// `POST /api/workers/job/{id}/status`
pub async fn status(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Body(report): Body<StatusReport>,
) -> Result<Json<Accepted>, ApiError> {
    let subject = key.subject(&id, report.attempt.map(|attempt| attempt.0))?;
    app.core.report_status(caller_named(actor(&subject.worker)), subject, report).await?;
    Ok(Json(Accepted { success: true }))
}

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

/// `PUT /api/workers/job/{id}/logs?attempt=&offset=`
pub async fn logs(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
    request: Request,
) -> Result<Json<LogAck>, ApiError> {
    let subject = key.subject(&id, place.attempt)?;
    let piece: Bytes = body(request, &app).await?;
    let durable = app.core.append_log(&subject, place.offset, piece).await?;
    Ok(Json(LogAck { durable }))
}

/// `PUT /api/workers/job/{id}/artifacts/{path}`
pub async fn artifact(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path((id, path)): Path<(String, String)>,
    Query(place): Query<Place>,
    headers: HeaderMap,
    content: RawBody,
) -> Result<Json<ArtifactAck>, ApiError> {
    let subject = key.subject(&id, place.attempt)?;
    let sha256 = headers.get("x-content-sha256").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let announced = Announced { path, kind: place.kind.unwrap_or(ArtifactKind::Other), sha256 };
    let caller = caller_named(actor(&subject.worker));
    let mut slow = false;
    let content = content.into_data_stream().inspect_err(|error| slow |= was_too_slow(error));
    let put = app.core.put_artifact(caller, subject, announced, content).await;
    // Not the file's fault: it may be sent again.
    put.map(Json).map_err(|refusal| if slow { ApiError::body_too_slow() } else { refusal.into() })
}

/// `GET /api/workers/job/{id}/bundle`
pub async fn bundle(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Result<impl IntoResponse, ApiError> {
    let subject = key.subject(&id, place.attempt)?;
    let config = app.core.bundle(&subject).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bundle_bytes(&config.files)))
}
