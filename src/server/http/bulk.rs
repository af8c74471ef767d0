//! Bulk actions on workers and jobs: `POST /api/admin/workers/bulk/…`, `POST /api/queue/bulk/…`.
//!
//! Each action has its own route instead of a field in the body, so that it requires the same permission as for one item.

use app::protocol::bulk::{BulkDrain, BulkIds, BulkResult, BulkResults};
use app::protocol::status::{BulkAction, BulkOutcome};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use futures_util::future::BoxFuture;

use super::openapi::doc::{IDEMPOTENCY_KEY_HEADER, OperationDoc};
use super::problem::ApiError;
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::caller_from_principal;
use crate::http::jobs::idempotency_key;
use crate::http::state::AppState;
use crate::service::access::Principal;
use crate::service::bulk::{BulkItemEffect, BulkItemOutcome, BulkRequest};

const fn bulk_doc(id: &'static str, summary: &'static str) -> OperationDoc {
    OperationDoc {
        description: "Each is handled independently: an error of one does not affect the others. The response contains for each \
                 its outcome: `done`, `unchanged` if nothing had to change, or `refused` with the problem.",
        problems: &["too_large"],
        ..OperationDoc::new(id, summary)
    }
}

/// `POST /api/admin/workers/bulk/drain`
pub const DRAIN: OperationDoc =
    OperationDoc { problems: &["out_of_range", "too_large"], ..bulk_doc("drainWorkers", "Drains several workers.") };
/// `POST /api/admin/workers/bulk/resume`
pub const RESUME: OperationDoc = bulk_doc("resumeWorkers", "Resumes several workers.");
/// `POST /api/admin/workers/bulk/delete`
pub const DELETE: OperationDoc = bulk_doc("deleteWorkers", "Deletes several workers that are offline.");
/// `POST /api/queue/bulk/cancel`
pub const CANCEL: OperationDoc = bulk_doc("cancelJobs", "Cancels several jobs.");
/// `POST /api/queue/bulk/retry`
pub const RETRY: OperationDoc = OperationDoc {
    headers: &[IDEMPOTENCY_KEY_HEADER],
    ..bulk_doc("retryJobs", "Retries several jobs that have ended, as new jobs.")
};

type BulkResponseFuture = BoxFuture<'static, Result<Json<BulkResults>, ApiError>>;

/// Returns the handler of an action.
pub fn handler(
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
pub async fn drain(
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

fn to_result((id, became): BulkItemOutcome) -> BulkResult {
    let plain = |outcome| BulkResult { id: id.clone(), outcome, new_job_id: None, problem: None };
    match became {
        Ok(BulkItemEffect::Done) => plain(BulkOutcome::Done),
        Ok(BulkItemEffect::Retried(job)) => BulkResult { new_job_id: Some(job), ..plain(BulkOutcome::Done) },
        Ok(BulkItemEffect::Unchanged) => plain(BulkOutcome::Unchanged),
        Err(error) => BulkResult { problem: Some(ApiError::from(error).to_problem()), ..plain(BulkOutcome::Refused) },
    }
}
