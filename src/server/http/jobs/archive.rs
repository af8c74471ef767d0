//! Files of a job as one zip archive.

use app::protocol::artifacts::ArtifactsZipQuery;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::files::{FILE_SECURITY_POLICY, safe_file_name_char};
use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::problem::ApiError;
use crate::http::state::AppState;

pub const ZIP: OperationDoc = OperationDoc {
    description: "Without parameters, all files. They are stored as they are, not compressed. The download cannot be \
                  continued, and its files are not compared with their SHA-256.",
    responses: &[ResponseDoc::new(200, "The archive.", ContentDoc::Bytes(&["application/zip"]))],
    problems: &["artifact_not_found", "invalid_path"],
    ..OperationDoc::new("downloadArtifactsAsZip", "Downloads artifacts of a job as one zip archive.")
};

/// `GET /api/queue/{id}/artifacts.zip`
pub async fn zip(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<ArtifactsZipQuery>,
) -> Result<Response, ApiError> {
    let archive = app.services.artifacts.archive(&job_id(&id)?, &query).await?;
    let name: String = archive.name.chars().map(safe_file_name_char).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CONTENT_LENGTH, archive.length.to_string()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (header::CONTENT_SECURITY_POLICY, FILE_SECURITY_POLICY.to_owned()),
    ];
    Ok((headers, Body::from_stream(archive.into_stream())).into_response())
}
