//! Attempts and events of a worker.

use app::protocol::workers::history::{PageQuery, WorkerAttempts, WorkerEvents};
use axum::extract::State;

use crate::http::edge::conditional::{IfNoneMatch, ListResponse};
use crate::http::edge::extractors::{Path, Query, worker_id};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;

pub const ATTEMPTS: OperationDoc = OperationDoc {
    description: "`record` summarizes all recent attempts, independent of the page.",
    problems: &["worker_not_found", "out_of_range"],
    ..OperationDoc::new("listWorkerAttempts", "Lists the attempts of a worker with their outcome, newest first.")
};

/// `GET /api/admin/workers/{id}/attempts`
pub async fn attempts(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<WorkerAttempts>, ApiError> {
    Ok(if_none_match.listed(app.services.workers.worker_attempts(&worker_id(&id)?, &query).await?))
}

pub const EVENTS: OperationDoc = OperationDoc {
    problems: &["worker_not_found", "out_of_range"],
    ..OperationDoc::new("listWorkerEvents", "Lists the events of a worker, newest first.")
};

/// `GET /api/admin/workers/{id}/events`
pub async fn events(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
    if_none_match: IfNoneMatch,
) -> Result<ListResponse<WorkerEvents>, ApiError> {
    Ok(if_none_match.listed(app.services.workers.worker_events(&worker_id(&id)?, &query).await?))
}
