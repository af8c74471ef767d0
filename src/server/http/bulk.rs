//! The same done to several at once, for workers and jobs alike: `POST /api/admin/workers/bulk/…`, `POST /api/queue/bulk/…`.
//!
//! Each action is a route of its own and not a word of the body, so that it takes what the action takes of one alone.

use app::protocol::bulk::{BulkDrain, BulkIds, BulkResult, BulkResults};
use app::protocol::status::{BulkAction, BulkOutcome};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use futures_util::future::BoxFuture;

use super::json::Json as Body;
use super::openapi::doc::{Doc, IDEMPOTENCY_KEY};
use super::problem::ApiError;
use super::queue::idempotency_key;
use super::request::caller;
use crate::service::access::Person;
use crate::service::bulk::{Asked, Became, Outcome};
use crate::state::App;

const fn doc(id: &'static str, summary: &'static str) -> Doc {
    Doc {
        detail: "To each as if it were asked for alone: what refuses one keeps no other back. The answer says of each \
                 what became of it: `done`, `unchanged` if it was so already, or `refused` with the problem.",
        problems: &["too_much"],
        ..Doc::of(id, summary)
    }
}

/// `POST /api/admin/workers/bulk/drain`
pub const DRAIN: Doc = Doc {
    problems: &["out_of_range", "too_much"],
    ..doc("drainWorkers", "Lets several workers finish what they have and take nothing new.")
};
/// `POST /api/admin/workers/bulk/resume`
pub const RESUME: Doc = doc("resumeWorkers", "Undoes the drains of several workers.");
/// `POST /api/admin/workers/bulk/delete`
pub const DELETE: Doc = doc("deleteWorkers", "Removes those of several workers that are offline.");
/// `POST /api/queue/bulk/cancel`
pub const CANCEL: Doc = doc("cancelJobs", "Cancels several jobs.");
/// `POST /api/queue/bulk/retry`
pub const RETRY: Doc = Doc {
    headers: &[IDEMPOTENCY_KEY],
    ..doc("retryJobs", "Submits several jobs that have ended once more, as new ones.")
};

type Answered = BoxFuture<'static, Result<Json<BulkResults>, ApiError>>;

/// The handler of an action.
pub fn of(
    action: BulkAction,
) -> impl Fn(State<App>, Extension<Person>, HeaderMap, Body<BulkIds>) -> Answered + Clone + Send + Sync + 'static {
    move |State(app), Extension(person), headers, Body(BulkIds { ids })| {
        let asked = Asked { key: idempotency_key(&headers), ..Asked::of(action, ids) };
        Box::pin(async move { answered(&app, &person, asked).await })
    }
}

/// The handler of a drain, which takes more than whom.
pub async fn drain(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Body(BulkDrain { ids, drain }): Body<BulkDrain>,
) -> Result<Json<BulkResults>, ApiError> {
    answered(&app, &person, Asked { drain, ..Asked::of(BulkAction::Drain, ids) }).await
}

async fn answered(app: &App, person: &Person, asked: Asked) -> Result<Json<BulkResults>, ApiError> {
    let outcomes = app.core.in_bulk(caller(person), person, asked).await?;
    Ok(Json(BulkResults { results: outcomes.into_iter().map(result).collect() }))
}

fn result((id, became): Outcome) -> BulkResult {
    let plain = |outcome| BulkResult { id: id.clone(), outcome, new_job_id: None, problem: None };
    match became {
        Ok(Became::Done) => plain(BulkOutcome::Done),
        Ok(Became::Again(job)) => BulkResult { new_job_id: Some(job), ..plain(BulkOutcome::Done) },
        Ok(Became::Unchanged) => plain(BulkOutcome::Unchanged),
        Err(refusal) => BulkResult { problem: Some(ApiError::from(refusal).problem()), ..plain(BulkOutcome::Refused) },
    }
}
