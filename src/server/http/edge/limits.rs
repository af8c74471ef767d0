//! Limits of request bodies, in bytes.

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::http::problem::ApiError;
use crate::http::state::AppState;

/// An API request.
pub const API: usize = 256 << 10;
/// A heartbeat: at most 12 readings of 64 GPUs.
pub const HEARTBEAT: usize = 1 << 20;
/// A configuration: its text, with space for JSON escapes.
pub const CONFIG: usize = 2 * crate::service::configs::MAX_BUNDLE;
/// A chunk of a log.
pub const LOG_CHUNK: usize = 1 << 20;
/// A batch of progress points, or the list of a checkpoint's files.
pub const PROGRESS: usize = 2 << 20;

/// Limits the bodies of a router. A request whose `Content-Length` is larger is rejected before its body is read.
pub fn limit_body(router: Router<AppState>, max: usize) -> Router<AppState> {
    router.layer(from_fn_with_state(max, check_content_length)).layer(DefaultBodyLimit::max(max))
}

async fn check_content_length(State(max): State<usize>, request: Request, next: Next) -> Response {
    if request.body().size_hint().lower() > max as u64 {
        return ApiError::body_too_large().into_response();
    }
    next.run(request).await
}
