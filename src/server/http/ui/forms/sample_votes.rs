//! Blind votes on samples.

use app::domain::ids::JobId;
use app::protocol::jobs::votes::SampleVote;
use app::ui::flash::FormName;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};

use super::{FormFields, empty_routes, field, merge_fields, redirect_with_problem};
use crate::http::edge::extractors::job_id;
use crate::http::edge::request::caller_from_principal;
use crate::http::problem::ApiError;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::text::percent_escaped;

pub fn routes(app: &AppState) -> Routes {
    empty_routes(app).form("/ui/jobs/compare/vote", Requirement::SeeJobs, vote)
}

/// `POST /ui/jobs/compare/vote`: redirects to the next pair.
async fn vote(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, ApiError> {
    let ids = pairs.iter().filter(|(name, _)| name == "id").map(|(_, id)| format!("id={}", percent_escaped(id)));
    let page = format!("/jobs/compare/vote?{}", ids.collect::<Vec<_>>().join("&"));
    let vote = parse_vote(&merge_fields(pairs))?;
    let cast = app.services.jobs.vote_on_samples(caller_from_principal(&principal), &principal, vote).await;
    Ok(match cast {
        Ok(()) => Redirect::to(&page).into_response(),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    })
}

fn parse_vote(fields: &FormFields) -> Result<SampleVote, ApiError> {
    let job = |name| -> Result<JobId, ApiError> { job_id(field(fields, name).unwrap_or_default()) };
    let jobs = [job("one")?, job("other")?];
    let better = match field(fields, "better") {
        Some("one") => Some(jobs[0].clone()),
        Some("other") => Some(jobs[1].clone()),
        _ => None,
    };
    let step = field(fields, "step").and_then(|step| step.parse().ok()).unwrap_or_default();
    Ok(SampleVote { jobs, step, sample: fields.get("sample").cloned().unwrap_or_default(), better })
}
