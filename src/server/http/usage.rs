//! `/api/usage`: what the fleet's GPUs were used for.

use app::protocol::usage::{UsageGroup, UsageQuery, UsageReport};
use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};

use super::address::Query;
use super::csv;
use super::openapi::doc::{Answer, Content, Doc};
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Usage").get("/usage", Needs::SeeJobs, SHOW, show).get(
        "/usage/export",
        Needs::SeeJobs,
        EXPORT,
        export,
    )
}

const SHOW: Doc = Doc {
    detail: "Whoever may not see all jobs is told of their own only, and nothing of the fleet. An attempt counts from when \
             its worker took it, for the part that lies in the asked time; what runs counts until its end.",
    problems: &["out_of_range"],
    ..Doc::of("getUsage", "Says what the fleet's GPUs were used for, and how long jobs waited.")
};

async fn show(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageReport>, ApiError> {
    Ok(Json(app.core.usage(&person, &query).await?))
}

const EXPORT: Doc = Doc {
    answers: &[Answer::with(200, "A line for each group, under a line of names.", Content::Bytes(&["text/csv"]))],
    problems: &["out_of_range"],
    ..Doc::of("exportUsage", "The groups of a time's use, as comma-separated values.")
};

async fn export(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Query(query): Query<UsageQuery>,
) -> Result<Response, ApiError> {
    let report = app.core.usage(&person, &query).await?;
    Ok(csv::file("usage.csv", lines(&report)))
}

fn lines(report: &UsageReport) -> String {
    let line = |UsageGroup { name, amount, .. }: &UsageGroup| {
        let (gpus, runs) = (amount.gpu_hours, amount.run_hours);
        format!("{},{gpus:.4},{runs:.4},{},{}\r\n", csv::field(name), amount.jobs, amount.attempts)
    };
    let names = format!("{},gpu_hours,run_hours,jobs,attempts\r\n", report.by.as_str());
    std::iter::once(names).chain(report.groups.iter().map(line)).collect()
}
