//! A job's log, events and artifacts.

use app::domain::ids::Attempt;
use app::protocol::artifacts::ArtifactsPage;
use app::protocol::audit::JobEvents;
use app::protocol::configs::ConfigDetail;
use app::protocol::queue::LogChunk;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;

use super::follow::follow;
use super::job_id;
use crate::http::address::{Path, Query};
use crate::http::openapi::doc::{Answer, Content, Doc, ETAG, IF_NONE_MATCH, LAST_EVENT_ID};
use crate::http::problem::ApiError;
use crate::service::access::{Admission, Person};
use crate::service::artifacts::Download;
use crate::state::App;

/// A file of a job opens nothing and is opened by nothing.
const ALONE: &str = "default-src 'none'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox";

/// How much of a log is read if nothing else was asked for, in bytes.
const PIECE: u32 = 64 << 10;

/// Which piece of which log.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Piece {
    /// Which attempt; left out, the newest.
    attempt: Option<u32>,
    /// Where to begin, in bytes; left out, at the end that `limit` allows.
    offset: Option<u64>,
    /// At most so many bytes.
    limit: Option<u32>,
    /// If it is there, the answer is the whole log as plain text.
    raw: Option<String>,
    /// If it is there, the answer is a stream of pieces as they come.
    follow: Option<String>,
}

/// See [`logs`].
pub const LOGS: Doc = Doc {
    headers: &[LAST_EVENT_ID],
    answers: &[
        Answer::json::<LogChunk>(200, "A piece."),
        Answer::events::<LogChunk>(&[], "With `follow`: pieces as they come, until the attempt is over."),
        Answer::with(
            200,
            "A piece; with `raw` the whole; with `follow` pieces as they come, until the attempt is over.",
            Content::Bytes(&["text/plain"]),
        ),
    ],
    problems: &["attempt_not_found", "files_unavailable", "too_many_event_streams"],
    ..Doc::of("readLog", "Reads an attempt's log: a piece, the whole, or as it grows.")
};

/// `GET /api/queue/{id}/logs`
pub async fn logs(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(piece): Query<Piece>,
    Extension(person): Extension<Person>,
    admission: Option<Extension<Admission>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let attempt = piece.attempt.map(Attempt);
    if piece.follow.is_some() {
        let attempt = app.core.attempt_of(&id, attempt).await?;
        let share = app.core.event_stream(&person)?;
        let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
        return Ok(follow(app, id, attempt, resumed.or(piece.offset).unwrap_or(0), admission, share).into_response());
    }
    if piece.raw.is_some() {
        return whole_log(&app, &id, attempt).await;
    }
    let chunk = app.core.read_log(&id, attempt, piece.offset, piece.limit.unwrap_or(PIECE)).await?;
    Ok(Json(chunk).into_response())
}

async fn whole_log(app: &App, id: &app::domain::ids::JobId, attempt: Option<Attempt>) -> Result<Response, ApiError> {
    let attempt = app.core.attempt_of(id, attempt).await?;
    let body = Body::from_stream(app.core.whole_log(id, attempt).await?);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let name = format!("attachment; filename=\"{id}-{attempt}.log\"");
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&name).map_err(|_| ApiError::bad_id("job"))?);
    Ok((headers, body).into_response())
}

/// See [`events`].
pub const EVENTS: Doc = Doc::of("listJobEvents", "Lists everything that happened to a job, oldest first.");

/// `GET /api/queue/{id}/events`
pub async fn events(State(app): State<App>, Path(id): Path<String>) -> Result<Json<JobEvents>, ApiError> {
    Ok(Json(app.core.job_events(&job_id(&id)?).await?))
}

/// See [`config`].
pub const CONFIG: Doc = Doc {
    detail: "A newer revision, or its removal, does not change it.",
    problems: &["config_not_found"],
    ..Doc::of("getJobConfig", "Shows the revision of its configuration that a job was submitted with, with its files.")
};

/// `GET /api/queue/{id}/config`
pub async fn config(State(app): State<App>, Path(id): Path<String>) -> Result<Json<ConfigDetail>, ApiError> {
    Ok(Json(app.core.job_config(&job_id(&id)?).await?))
}

/// See [`artifacts`].
pub const ARTIFACTS: Doc = Doc::of("listArtifacts", "Lists the files that a job made, by path.");

/// `GET /api/queue/{id}/artifacts`
pub async fn artifacts(State(app): State<App>, Path(id): Path<String>) -> Result<Json<ArtifactsPage>, ApiError> {
    Ok(Json(app.core.artifacts_page(&job_id(&id)?).await?))
}

/// See [`download`].
pub const DOWNLOAD: Doc = Doc {
    headers: &[IF_NONE_MATCH],
    answers: &[
        Answer {
            headers: &[ETAG],
            ..Answer::with(
                200,
                "The file.",
                Content::Bytes(&["application/octet-stream", "image/png", "image/jpeg", "image/webp", "image/gif"]),
            )
        },
        Answer::with(304, "It is the one that the caller has.", Content::Nothing),
    ],
    problems: &["artifact_not_found", "files_unavailable", "invalid_path"],
    ..Doc::of("downloadArtifact", "Gives a file that a job made.")
};

/// `GET /api/queue/{id}/artifacts/{path}`: a picture is shown, anything else is saved; nothing is ever run.
pub async fn download(
    State(app): State<App>,
    Path((id, path)): Path<(String, String)>,
    request_headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Download { artifact, bytes } = app.core.open_artifact(&job_id(&id)?, &path).await?;
    let etag = format!("\"{}\"", artifact.sha256);
    let known = request_headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let (content_type, disposition) = presented(&artifact.path);
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::ETAG, etag),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::CONTENT_SECURITY_POLICY, ALONE.to_owned()),
    ];
    if known {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let length = [(header::CONTENT_LENGTH, artifact.size.to_string())];
    Ok((headers, length, Body::from_stream(bytes)).into_response())
}

fn presented(path: &str) -> (&'static str, String) {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let picture = match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        _ => None,
    };
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().map(harmless).collect();
    match picture {
        Some(content_type) => (content_type, format!("inline; filename=\"{name}\"")),
        None => ("application/octet-stream", format!("attachment; filename=\"{name}\"")),
    }
}

fn harmless(c: char) -> char {
    if c.is_ascii_alphanumeric() || "._- ".contains(c) { c } else { '_' }
}
