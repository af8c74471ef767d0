//! `/api/queue/votes`: blind votes on samples.

use app::protocol::agents::ReportResponse;
use app::protocol::jobs::votes::{SampleVote, SampleVotes, SampleVotesQuery};
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::edge::extractors::Query;
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

pub const LIST: OperationDoc = OperationDoc {
    problems: &["out_of_range"],
    ..OperationDoc::new("listSampleVotes", "Lists the caller's votes on samples of 2 to 20 jobs, and counts all votes.")
};

pub async fn list(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<SampleVotesQuery>,
) -> Result<Json<SampleVotes>, ApiError> {
    Ok(Json(app.services.jobs.sample_votes(&principal, &query.ids).await?))
}

pub const VOTE: OperationDoc = OperationDoc {
    description: "Both jobs must have an image of the sample at this step. The share of votes for a job is its metric `vote`, from \
             0 to 1; a tie counts as half a vote. A second vote of the caller on the same samples replaces the first.",
    problems: &["job_not_found", "out_of_range", "too_large"],
    ..OperationDoc::new("voteOnSamples", "Records which of two jobs has the better sample.")
};

pub async fn vote(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(vote): Body<SampleVote>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.jobs.vote_on_samples(caller_from_principal(&principal), &principal, vote).await?;
    Ok(Json(ReportResponse { success: true }))
}
