//! Bulk actions on workers and jobs: `POST /api/admin/workers/bulk/…`, `POST /api/queue/bulk/…`.
//!
//! Each action has its own route instead of a field in the body, so that it requires the same permission as for one
//! item.

use app::protocol::bulk::{BulkDrain, BulkIds, BulkResult, BulkResults};
use app::protocol::status::{BulkAction, BulkOutcome, BulkTarget};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use futures_util::future::BoxFuture;

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::caller_from_principal;
use crate::http::edge::request_headers::idempotency_key;
use crate::http::operation::doc::{IDEMPOTENCY_KEY_HEADER, OperationDoc};
use crate::http::request_context::current_locale;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::bulk::{BulkItemEffect, BulkItemOutcome, BulkRequest, bulk_requirement};

const fn bulk_doc(id: &'static str, summary: &'static str) -> OperationDoc {
    OperationDoc {
        description: "Each is handled independently: an error of one does not affect the others. The response contains for each \
                 its outcome: `done`, `unchanged` if nothing had to change, or `rejected` with the problem.",
        problems: &["too_large"],
        ..OperationDoc::new(id, summary)
    }
}

fn doc(action: BulkAction) -> OperationDoc {
    match action {
        BulkAction::Drain => OperationDoc {
            problems: &["out_of_range", "too_large"],
            ..bulk_doc("drainWorkers", "Drains several workers.")
        },
        BulkAction::Resume => bulk_doc("resumeWorkers", "Resumes several workers."),
        BulkAction::Delete => bulk_doc("deleteWorkers", "Deletes several workers that are offline."),
        BulkAction::Cancel => bulk_doc("cancelJobs", "Cancels several jobs."),
        BulkAction::Retry => OperationDoc {
            headers: &[IDEMPOTENCY_KEY_HEADER],
            ..bulk_doc("retryJobs", "Retries several jobs that have ended, as new jobs.")
        },
    }
}

/// Returns the routes of the actions on these items, below the path of their list.
pub fn routes(app: &AppState, tag: &'static str, target: BulkTarget, list: &str) -> Routes {
    let actions = BulkAction::ALL.into_iter().filter(|action| action.target() == target);
    actions.fold(Routes::new(app, tag), |routes, action| {
        let path = format!("{list}/bulk/{}", action.as_str());
        let (requirement, doc) = (bulk_requirement(action), doc(action));
        if action == BulkAction::Drain {
            routes.post(&path, requirement, doc, drain)
        } else {
            routes.post(&path, requirement, doc, handler(action))
        }
    })
}

type BulkResponseFuture = BoxFuture<'static, Result<Json<BulkResults>, ApiError>>;

fn handler(
    action: BulkAction,
) -> impl Fn(State<AppState>, Extension<Principal>, HeaderMap, Body<BulkIds>) -> BulkResponseFuture
+ Clone
+ Send
+ Sync
+ 'static {
    move |State(app), Extension(principal), headers, Body(BulkIds { ids })| {
        let request = BulkRequest { idempotency_key: idempotency_key(&headers), ..BulkRequest::new(action, ids) };
        Box::pin(async move { run_bulk(&app, &principal, request).await })
    }
}

/// Drains several workers; the body has more fields than the ids.
async fn drain(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Body(BulkDrain { ids, drain }): Body<BulkDrain>,
) -> Result<Json<BulkResults>, ApiError> {
    run_bulk(&app, &principal, BulkRequest { drain, ..BulkRequest::new(BulkAction::Drain, ids) }).await
}

async fn run_bulk(app: &AppState, principal: &Principal, request: BulkRequest) -> Result<Json<BulkResults>, ApiError> {
    let outcomes = app.services.bulk.run_bulk(caller_from_principal(principal), principal, request).await?;
    Ok(Json(BulkResults { results: outcomes.into_iter().map(to_result).collect() }))
}

fn to_result((id, outcome): BulkItemOutcome) -> BulkResult {
    let plain = |outcome| BulkResult { id: id.clone(), outcome, new_job_id: None, problem: None };
    match outcome {
        Ok(BulkItemEffect::Done) => plain(BulkOutcome::Done),
        Ok(BulkItemEffect::Retried(job)) => BulkResult { new_job_id: Some(job), ..plain(BulkOutcome::Done) },
        Ok(BulkItemEffect::Unchanged) => plain(BulkOutcome::Unchanged),
        Err(error) => {
            let problem = ApiError::from(error).to_problem(current_locale());
            BulkResult { problem: Some(problem), ..plain(BulkOutcome::Rejected) }
        }
    }
}
