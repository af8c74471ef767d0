//! Time series of a job: metric points of its trainer, and readings of its GPUs.

use app::domain::ids::AttemptNumber;
use app::protocol::gpus::history::{GpuHistory, JobMetrics};
use app::protocol::jobs::{JobLive, JobLiveQuery, ProgressSeries, SeriesQuery};
use axum::Json;
use axum::extract::State;

use crate::http::edge::extractors::{Path, Query, job_id};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;

pub const LIVE: OperationDoc = OperationDoc {
    description: "For clients that show a running job: one request instead of four.",
    problems: &["attempt_not_found", "files_unavailable"],
    ..OperationDoc::new("followJob", "Shows the live data of a job: progress, metrics, GPUs, and a log chunk.")
};

/// `GET /api/queue/{id}/live`
pub async fn live(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<JobLiveQuery>,
) -> Result<Json<JobLive>, ApiError> {
    Ok(Json(app.services.job_live(&job_id(&id)?, query.attempt.map(AttemptNumber), query.offset).await?))
}

pub const PROGRESS: OperationDoc = OperationDoc {
    problems: &["attempt_not_found"],
    ..OperationDoc::new("getJobProgress", "Shows an attempt's progress, downsampled for charts.")
};

/// `GET /api/queue/{id}/progress`
pub async fn progress(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<ProgressSeries>, ApiError> {
    Ok(Json(app.services.jobs.progress_series(&job_id(&id)?, query).await?))
}

pub const METRICS: OperationDoc = OperationDoc {
    description: "Each metric is downsampled separately, keeping its extremes.",
    problems: &["attempt_not_found"],
    ..OperationDoc::new("getJobMetrics", "Shows all metrics of an attempt by step.")
};

/// `GET /api/queue/{id}/metrics`
pub async fn metrics(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<JobMetrics>, ApiError> {
    Ok(Json(app.services.jobs.job_metrics(&job_id(&id)?, query).await?))
}

pub const GPUS: OperationDoc = OperationDoc {
    description: "Every 15 s if it started within the last hour, otherwise every two minutes of the last day.",
    ..OperationDoc::new("getJobGpuHistory", "Shows readings of a job's GPUs during its latest attempt.")
};

/// `GET /api/queue/{id}/gpus`
pub async fn gpus(State(app): State<AppState>, Path(id): Path<String>) -> Result<Json<GpuHistory>, ApiError> {
    Ok(Json(app.services.gpus.job_history(&job_id(&id)?).await?))
}
