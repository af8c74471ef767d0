//! Blind votes on samples.

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::JobId;
use app::protocol::jobs::votes::SampleVote;
use app::ui::flash::FormName;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};

use super::{FormFields, empty_routes, field, merge_fields, redirect_with_problem};
use crate::http::edge::request::caller_from_principal;
use crate::http::routes::Routes;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::error::{IdKind, InvalidInput, ServiceError};
use crate::text::percent_escaped;

pub fn routes(app: &AppState) -> Routes {
    empty_routes(app).form("/ui/jobs/compare/vote", Requirement::SeeJobs, vote)
}

/// `POST /ui/jobs/compare/vote`: redirects to the next pair.
async fn vote(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Response {
    let ids = pairs.iter().filter(|(name, _)| name == "id").map(|(_, id)| format!("id={}", percent_escaped(id)));
    let page = format!("/jobs/compare/vote?{}", ids.collect::<Vec<_>>().join("&"));
    let recorded = match parse_vote(&merge_fields(pairs)) {
        Err(error) => Err(error),
        Ok(vote) => app.services.jobs.vote_on_samples(caller_from_principal(&principal), &principal, vote).await,
    };
    match recorded {
        Ok(()) => Redirect::to(&page).into_response(),
        Err(error) => redirect_with_problem(&app, &page, FormName::Action, error, FormFields::new()),
    }
}

fn parse_vote(fields: &FormFields) -> Result<SampleVote, ServiceError> {
    let job = |name| {
        let id = JobId::parse(field(fields, name).unwrap_or_default());
        id.map_err(|_| ServiceError::InvalidId(IdKind::Job))
    };
    let out_of_range = |field, allowed| InvalidInput::OutOfRange { field, allowed };
    let jobs = [job("one")?, job("other")?];
    let step = field(fields, "step").and_then(|step| step.parse().ok());
    let step = step.ok_or(out_of_range("step", AllowedValues::Number { min: 0, max: i64::MAX.unsigned_abs() }))?;
    let better = match field(fields, "better") {
        Some("one") => Some(jobs[0].clone()),
        Some("other") => Some(jobs[1].clone()),
        Some("none") => None,
        _ => return Err(out_of_range("better", AllowedValues::VoteButton).into()),
    };
    Ok(SampleVote { jobs, step, sample: fields.get("sample").cloned().unwrap_or_default(), better })
}
