//! How large bodies may be, in bytes.

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::problem::ApiError;
use crate::state::App;

/// An API call.
pub const API: usize = 256 << 10;
/// A heartbeat: at most 12 moments of 64 GPUs.
pub const HEARTBEAT: usize = 1 << 20;
/// A configuration: its text, with room for JSON's escapes.
pub const CONFIG: usize = 2 * crate::service::configs::MAX_BUNDLE;
/// A piece of a log.
pub const LOG_PIECE: usize = 1 << 20;
/// A batch of progress points, or a list of a checkpoint's files.
pub const PROGRESS: usize = 2 << 20;

/// The same routes, whose bodies have this many bytes at most. What says that it is larger is refused before any of it
/// is read.
pub fn bounded(router: Router<App>, most: usize) -> Router<App> {
    router.layer(from_fn_with_state(most, announced)).layer(DefaultBodyLimit::max(most))
}

async fn announced(State(most): State<usize>, request: Request, next: Next) -> Response {
    if request.body().size_hint().lower() > most as u64 {
        return ApiError::body_too_large().into_response();
    }
    next.run(request).await
}
