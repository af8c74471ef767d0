//! `/api/usage`: GPU usage of the fleet.

use app::domain::usage::calendar::UTC;
use app::protocol::usage::{UsageGroup, UsageQuery, UsageReport};
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::csv;
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::{ContentDoc, OperationDoc, ResponseDoc};
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Usage").get("/usage", Requirement::SeeJobs, SHOW, show).get(
        "/usage/export",
        Requirement::SeeJobs,
        EXPORT,
        export,
    )
}

const SHOW: OperationDoc = OperationDoc {
    description: "Callers who may not see all jobs get their own usage only, without the fleet's. An attempt counts from its \
             acceptance, for the part within the requested time; a running one counts until its end.",
    problems: &["out_of_range"],
    ..OperationDoc::new("getUsage", "Shows GPU usage of the fleet, and how long jobs waited.")
};

async fn show(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageReport>, ApiError> {
    Ok(Json(app.services.usage.usage(&principal, &query, UTC).await?))
}

const EXPORT: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::new(200, "One line per group, after a header line.", ContentDoc::Bytes(&["text/csv"]))],
    problems: &["out_of_range"],
    ..OperationDoc::new("exportUsage", "Exports usage by group as CSV.")
};

async fn export(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<UsageQuery>,
) -> Result<Response, ApiError> {
    let report = app.services.usage.usage(&principal, &query, UTC).await?;
    Ok(csv::csv_response("usage.csv", csv_lines(&report)))
}

fn csv_lines(report: &UsageReport) -> String {
    let line = |UsageGroup { name, amount, .. }: &UsageGroup| {
        let (gpus, runs) = (amount.gpu_hours, amount.run_hours);
        format!("{},{gpus:.4},{runs:.4},{},{}\r\n", csv::csv_field(name), amount.jobs, amount.attempts)
    };
    let names = format!("{},gpu_hours,run_hours,jobs,attempts\r\n", report.by.as_str());
    std::iter::once(names).chain(report.groups.iter().map(line)).collect()
}
