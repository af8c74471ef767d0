//! Logs, events and artifacts of a job.

use app::domain::ids::AttemptNumber;
use app::protocol::artifacts::ArtifactsPage;
use app::protocol::audit::JobEvents;
use app::protocol::configs::ConfigDetail;
use app::protocol::jobs::LogChunk;
use app::protocol::logs::LogQuery;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::follow::follow;
use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::edge::file_part::{CONTENT_RANGE_HEADER, FilePart, IF_RANGE_HEADER, RANGE_HEADER};
use crate::http::operation::doc::{
    ContentDoc, ETAG_HEADER, IF_NONE_MATCH_HEADER, LAST_EVENT_ID_HEADER, OperationDoc, ResponseDoc,
};
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::auth_grant::AuthGrant;
use crate::service::error::IdKind;

/// Isolates files of a job from everything else in the browser.
pub(super) const FILE_SECURITY_POLICY: &str =
    "default-src 'none'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox";

/// The default size of a log chunk, in bytes.
const DEFAULT_LOG_BYTES: u32 = 64 << 10;

pub const LOGS: OperationDoc = OperationDoc {
    headers: &[LAST_EVENT_ID_HEADER],
    responses: &[
        ResponseDoc::json::<LogChunk>(200, "A chunk."),
        ResponseDoc::events::<LogChunk>(&[], "With `follow`: chunks as they arrive, until the attempt ends."),
        ResponseDoc::new(
            200,
            "A chunk; with `raw` the whole log; with `follow` chunks as they arrive, until the attempt ends.",
            ContentDoc::Bytes(&["text/plain"]),
        ),
    ],
    problems: &["attempt_not_found", "files_unavailable", "too_many_event_streams"],
    ..OperationDoc::new("readLog", "Returns an attempt's log: a chunk, the whole, or a stream.")
};

/// `GET /api/queue/{id}/logs`
pub async fn logs(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<LogQuery>,
    Extension(principal): Extension<Principal>,
    grant: Option<Extension<AuthGrant>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = job_id(&id)?;
    let attempt = query.attempt.map(AttemptNumber);
    if query.follow.is_some() {
        let attempt = app.services.jobs.resolve_attempt(&id, attempt).await?;
        let permit = app.services.access.acquire_event_stream(&principal)?;
        let resume_offset = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
        return Ok(follow(app, id, attempt, resume_offset.or(query.offset).unwrap_or(0), grant, permit).into_response());
    }
    if query.raw.is_some() {
        return raw_log(&app, &id, attempt).await;
    }
    let chunk =
        app.services.logs.read_log(&id, attempt, query.offset, query.limit.unwrap_or(DEFAULT_LOG_BYTES)).await?;
    Ok(Json(chunk).into_response())
}

async fn raw_log(
    app: &AppState,
    id: &app::domain::ids::JobId,
    attempt: Option<AttemptNumber>,
) -> Result<Response, ApiError> {
    let attempt = app.services.jobs.resolve_attempt(id, attempt).await?;
    let body = Body::from_stream(app.services.logs.stream_log(id, attempt).await?);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    let name = format!("attachment; filename=\"{id}-{attempt}.log\"");
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_str(&name).map_err(|_| ApiError::invalid_id(IdKind::Job))?,
    );
    Ok((headers, body).into_response())
}

pub const EVENTS: OperationDoc = OperationDoc::new("listJobEvents", "Lists the events of a job, oldest first.");

/// `GET /api/queue/{id}/events`
pub async fn events(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<JobEvents>, ApiError> {
    Ok(Json(app.services.jobs.job_events(&principal, &job_id(&id)?).await?))
}

pub const CONFIG: OperationDoc = OperationDoc {
    description: "Newer revisions and deletion do not affect it.",
    problems: &["config_not_found"],
    ..OperationDoc::new("getJobConfig", "Shows the configuration revision of a job, with its files.")
};

/// `GET /api/queue/{id}/config`
pub async fn config(State(app): State<AppState>, Path(id): Path<String>) -> Result<Json<ConfigDetail>, ApiError> {
    Ok(Json(app.services.jobs.job_config(&job_id(&id)?).await?))
}

pub const ARTIFACTS: OperationDoc = OperationDoc::new("listArtifacts", "Lists the artifacts of a job by path.");

/// `GET /api/queue/{id}/artifacts`
pub async fn artifacts(State(app): State<AppState>, Path(id): Path<String>) -> Result<Json<ArtifactsPage>, ApiError> {
    Ok(Json(app.services.jobs.artifacts_page(&job_id(&id)?).await?))
}

const FILE_CONTENT: ContentDoc =
    ContentDoc::Bytes(&["application/octet-stream", "image/png", "image/jpeg", "image/webp", "image/gif"]);

pub const DOWNLOAD: OperationDoc = OperationDoc {
    description: "Continues an interrupted download with `Range` and `If-Range`.",
    headers: &[IF_NONE_MATCH_HEADER, RANGE_HEADER, IF_RANGE_HEADER],
    responses: &[
        ResponseDoc { headers: &[ETAG_HEADER], ..ResponseDoc::new(200, "The file.", FILE_CONTENT) },
        ResponseDoc {
            headers: &[ETAG_HEADER, CONTENT_RANGE_HEADER],
            ..ResponseDoc::new(206, "The requested bytes.", FILE_CONTENT)
        },
        ResponseDoc::new(304, "Not modified.", ContentDoc::Empty),
    ],
    problems: &["artifact_not_found", "files_unavailable", "invalid_path", "range_not_satisfiable"],
    ..OperationDoc::new("downloadArtifact", "Downloads an artifact of a job.")
};

/// `GET /api/queue/{id}/artifacts/{path}`: images are displayed, other files are downloaded, and nothing is executed.
pub async fn download(
    State(app): State<AppState>,
    Path((id, path)): Path<(String, String)>,
    request_headers: HeaderMap,
) -> Result<Response, ApiError> {
    let job = job_id(&id)?;
    let artifact = app.services.artifacts.find_artifact(&job, &path).await?;
    let etag = format!("\"{}\"", artifact.sha256);
    let is_current =
        request_headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes());
    let (content_type, disposition) = content_headers(&artifact.path);
    let headers = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::ETAG, etag.clone()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::CONTENT_SECURITY_POLICY, FILE_SECURITY_POLICY.to_owned()),
    ];
    if is_current {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let part = FilePart::requested(&request_headers, &etag, artifact.size)?;
    let bytes = app.services.artifacts.read_artifact(&job, &artifact, part.range.clone()).await?;
    Ok((headers, part.response(Body::from_stream(bytes))).into_response())
}

fn content_headers(path: &str) -> (&'static str, String) {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let image_type = match extension.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        _ => None,
    };
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().map(safe_file_name_char).collect();
    match image_type {
        Some(content_type) => (content_type, format!("inline; filename=\"{name}\"")),
        None => ("application/octet-stream", format!("attachment; filename=\"{name}\"")),
    }
}

pub(super) fn safe_file_name_char(c: char) -> char {
    if c.is_ascii_alphanumeric() || "._- ".contains(c) { c } else { '_' }
}
