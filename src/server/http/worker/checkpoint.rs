//! Checkpoints of an attempt, and of those before it.

use std::ops::Range;

use app::protocol::checkpoints::WholeCheckpoint;
use app::protocol::worker::{Accepted, EarlierCheckpoint};
use axum::body::Body as RawBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::agent::actor;
use super::job::{FENCED, Of};
use crate::http::access::JobKey;
use crate::http::address::{Path, Query};
use crate::http::headers::text;
use crate::http::json::Json as Body;
use crate::http::openapi::doc::{Answer, Content, Doc, ETAG, Header};
use crate::http::problem::ApiError;
use crate::http::request::caller_named;
use crate::state::App;

/// See [`whole`].
pub const WHOLE: Doc = Doc {
    detail: "What was only begun is no place to go on from, so this comes after the last of its files.",
    problems: &[
        "old_attempt",
        "not_your_attempt",
        "job_ended",
        "checkpoint_incomplete",
        "invalid_path",
        "out_of_range",
        "too_much",
    ],
    ..Doc::of("noteCheckpoint", "Says that every file of a checkpoint was sent.")
};

/// `POST /api/workers/job/{id}/checkpoint?attempt=`
pub async fn whole(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(of): Query<Of>,
    Body(whole): Body<WholeCheckpoint>,
) -> Result<Json<Accepted>, ApiError> {
    let subject = key.subject(&id, of.attempt)?;
    app.core.note_checkpoint(caller_named(actor(&subject.worker)), subject, whole).await?;
    Ok(Json(Accepted { success: true }))
}

/// See [`earlier`].
pub const EARLIER: Doc = Doc {
    problems: FENCED,
    ..Doc::of(
        "getEarlierCheckpoint",
        "Says which checkpoint an attempt may go on from; its name is empty if there is none.",
    )
};

/// `GET /api/workers/job/{id}/checkpoint?attempt=`
pub async fn earlier(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path(id): Path<String>,
    Query(of): Query<Of>,
) -> Result<Json<EarlierCheckpoint>, ApiError> {
    let subject = key.subject(&id, of.attempt)?;
    Ok(Json(app.core.earlier_checkpoint(&subject).await?))
}

/// Asks for a part of a file.
const RANGE: Header = Header { name: "Range", about: "`bytes=A-` or `bytes=A-B`: only these bytes." };
const BYTES: Content = Content::Bytes(&["application/octet-stream"]);

/// See [`file`].
pub const FILE: Doc = Doc {
    headers: &[RANGE],
    answers: &[
        Answer { headers: &[ETAG], ..Answer::with(200, "The file.", BYTES) },
        Answer { headers: &[ETAG], ..Answer::with(206, "The bytes that were asked for.", BYTES) },
    ],
    problems: &[
        "old_attempt",
        "not_your_attempt",
        "job_ended",
        "artifact_not_found",
        "invalid_path",
        "range_not_satisfiable",
        "files_unavailable",
    ],
    ..Doc::of("getEarlierCheckpointFile", "Gives a file of the checkpoint that an attempt may go on from.")
};

/// `GET /api/workers/job/{id}/checkpoint/{path}?attempt=`
pub async fn file(
    State(app): State<App>,
    Extension(key): Extension<JobKey>,
    Path((id, path)): Path<(String, String)>,
    Query(of): Query<Of>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let subject = key.subject(&id, of.attempt)?;
    let found = app.core.earlier_file(&subject, &path).await?;
    let (size, etag) = (found.file.size_bytes, format!("\"{}\"", found.file.sha256));
    let same = text(&headers, "if-range").is_none_or(|known| known == etag);
    let wanted = text(&headers, "range").filter(|_| same).map_or(Wanted::All, |range| wanted(range, size));
    let (status, range) = match wanted {
        Wanted::All => (StatusCode::OK, 0..size),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => return Err(ApiError::range_not_satisfiable(size)),
    };
    let about = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
        (header::ETAG, etag),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let part = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| [(header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1))]);
    let body = if range.is_empty() { RawBody::empty() } else { RawBody::from_stream(found.bytes(range).await?) };
    let mut answer = (status, about, body).into_response();
    if let Some([(name, value)]) = part
        && let Ok(value) = value.parse()
    {
        answer.headers_mut().insert(name, value);
    }
    Ok(answer)
}

/// What of a file somebody wants.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// All of it, or what nobody understands, which is the same.
    All,
    /// These bytes.
    Part(Range<u64>),
    /// What begins behind its end.
    Nothing,
}

fn wanted(range: &str, size: u64) -> Wanted {
    let bounds = range.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let number = |text: &str| text.parse::<u64>().ok();
    match bounds.map(|(from, to)| (number(from), to, number(to))) {
        Some((Some(from), "", _)) if from < size => Wanted::Part(from..size),
        Some((Some(from), _, Some(to))) if from <= to && from < size => {
            Wanted::Part(from..size.min(to.saturating_add(1)))
        }
        Some((Some(from), "", _)) if from >= size => Wanted::Nothing,
        Some((Some(from), _, Some(to))) if from <= to => Wanted::Nothing,
        _ => Wanted::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_row_by_row() {
        let rows = [
            ("bytes=0-", Wanted::Part(0..10)),
            ("bytes=4-", Wanted::Part(4..10)),
            ("bytes=4-4", Wanted::Part(4..5)),
            ("bytes=4-99", Wanted::Part(4..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=10-12", Wanted::Nothing),
            ("bytes=0-18446744073709551615", Wanted::Part(0..10)),
            ("bytes=5-4", Wanted::All),
            ("bytes=-4", Wanted::All),
            ("bytes=0-1,3-4", Wanted::All),
            ("lines=0-1", Wanted::All),
            ("bytes=", Wanted::All),
        ];
        for (range, expected) in rows {
            assert_eq!(wanted(range, 10), expected, "{range}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Nothing);
    }
}
