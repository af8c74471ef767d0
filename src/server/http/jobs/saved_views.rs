//! `/api/queue/views`: saved views of the list of jobs.

use app::protocol::agents::ReportResponse;
use app::protocol::jobs::saved_views::{SaveView, SavedView, SavedViewQuery, SavedViews};
use axum::extract::State;
use axum::{Extension, Json};

use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::json::Json as Body;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::access::Principal;

pub const LIST: OperationDoc =
    OperationDoc::new("listSavedViews", "Lists the caller's saved views of the list of jobs, and the shared ones.");

pub async fn list(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<SavedViews>, ApiError> {
    Ok(Json(app.services.jobs.saved_views(&principal).await?))
}

pub const SAVE: OperationDoc = OperationDoc {
    description: "An existing view of the caller with this name is replaced. All users see a shared one, each with the \
             jobs that they may see; sharing requires `job.submit`.",
    problems: &["invalid_search", "out_of_range", "too_large", "permission_denied"],
    ..OperationDoc::new("saveView", "Saves a view of the list of jobs.")
};

pub async fn save(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Body(save): Body<SaveView>,
) -> Result<Json<SavedView>, ApiError> {
    let caller = caller_from_principal(&principal);
    Ok(Json(app.services.jobs.save_view(caller, &principal, &name, &save).await?))
}

pub const DELETE: OperationDoc = OperationDoc {
    description: "A shared view of another user requires `queue.manage`.",
    problems: &["view_not_found", "permission_denied"],
    ..OperationDoc::new("deleteView", "Deletes a saved view of the list of jobs.")
};

pub async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Query(query): Query<SavedViewQuery>,
) -> Result<Json<ReportResponse>, ApiError> {
    let caller = caller_from_principal(&principal);
    app.services.jobs.delete_view(caller, &principal, query.owner.as_deref(), &name).await?;
    Ok(Json(ReportResponse { success: true }))
}
