//! What a job measured over time: its trainer's numbers, and its GPUs.

use app::domain::ids::Attempt;
use app::protocol::history::{GpuHistory, JobMetrics};
use app::protocol::queue::ProgressSeries;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::job_id;
use crate::http::address::{Path, Query};
use crate::http::openapi::doc::Doc;
use crate::http::problem::ApiError;
use crate::state::App;

/// Whose numbers.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct OfAttempt {
    /// Which attempt; left out, the newest.
    attempt: Option<u32>,
}

/// See [`progress`].
pub const PROGRESS: Doc = Doc {
    problems: &["attempt_not_found"],
    ..Doc::of("getJobProgress", "Shows an attempt's progress, thinned to what a chart can show.")
};

/// `GET /api/queue/{id}/progress`
pub async fn progress(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(of): Query<OfAttempt>,
) -> Result<Json<ProgressSeries>, ApiError> {
    Ok(Json(app.core.progress_series(&job_id(&id)?, of.attempt.map(Attempt)).await?))
}

/// See [`metrics`].
pub const METRICS: Doc = Doc {
    detail: "Each number is thinned by itself, so that its extremes stay.",
    problems: &["attempt_not_found"],
    ..Doc::of("getJobMetrics", "Shows every number that an attempt's trainer told, over its steps.")
};

/// `GET /api/queue/{id}/metrics`
pub async fn metrics(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(of): Query<OfAttempt>,
) -> Result<Json<JobMetrics>, ApiError> {
    Ok(Json(app.core.job_metrics(&job_id(&id)?, of.attempt.map(Attempt)).await?))
}

/// See [`gpus`].
pub const GPUS: Doc = Doc {
    detail: "Every 15 s if it began within the last hour, else every two minutes of the last day.",
    ..Doc::of("getJobGpuHistory", "Shows how a job's own GPUs did while its newest attempt had them.")
};

/// `GET /api/queue/{id}/gpus`
pub async fn gpus(State(app): State<App>, Path(id): Path<String>) -> Result<Json<GpuHistory>, ApiError> {
    Ok(Json(app.core.job_history(&job_id(&id)?).await?))
}
