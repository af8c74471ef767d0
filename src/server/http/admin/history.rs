//! What a worker did, and what happened with it.

use app::protocol::worker_history::{PartQuery, WorkerAttempts, WorkerEvents};
use axum::extract::State;

use super::worker_id;
use crate::http::address::{Path, Query};
use crate::http::conditional::{IfNoneMatch, Listed};
use crate::http::openapi::doc::Doc;
use crate::http::problem::ApiError;
use crate::state::App;

/// See [`attempts`].
pub const ATTEMPTS: Doc = Doc {
    detail: "`record` is about all of late, wherever the page is.",
    problems: &["worker_not_found", "out_of_range"],
    ..Doc::of(
        "listWorkerAttempts",
        "Lists the attempts that were offered to a worker, newest first, and how they ended.",
    )
};

/// `GET /api/admin/workers/{id}/attempts`
pub async fn attempts(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<PartQuery>,
    known: IfNoneMatch,
) -> Result<Listed<WorkerAttempts>, ApiError> {
    Ok(known.listed(app.core.worker_attempts(&worker_id(&id)?, &query).await?))
}

/// See [`events`].
pub const EVENTS: Doc = Doc {
    problems: &["worker_not_found", "out_of_range"],
    ..Doc::of("listWorkerEvents", "Lists everything that happened with a worker, newest first.")
};

/// `GET /api/admin/workers/{id}/events`
pub async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(query): Query<PartQuery>,
    known: IfNoneMatch,
) -> Result<Listed<WorkerEvents>, ApiError> {
    Ok(known.listed(app.core.worker_events(&worker_id(&id)?, &query).await?))
}
