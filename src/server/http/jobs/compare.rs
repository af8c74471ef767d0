//! `GET /api/queue/compare`

use app::protocol::jobs::compare::{CompareJobsQuery, JobComparison};
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::edge::extractors::Query;
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

pub const COMPARE: OperationDoc = OperationDoc {
    description: "Their configurations require `config.view`. Jobs that do not exist, or that the caller may not see, are listed, and \
             the others are compared.",
    problems: &["out_of_range"],
    ..OperationDoc::new("compareJobs", "Compares 2 to 20 jobs: their configurations, metrics and final values.")
};

pub async fn compare(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<CompareJobsQuery>,
) -> Result<Json<JobComparison>, ApiError> {
    Ok(Json(app.services.jobs.compare_jobs(&principal, &query).await?))
}
