//! `GET /api/search`

use app::domain::access::Permission;
use app::protocol::search::{SearchPage, SearchQuery};
use axum::extract::State;
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::extractors::Query;
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

/// One of these is required to search.
pub const SEARCH_PERMISSIONS: &[Permission] = &[Permission::JobViewOwn, Permission::ConfigView, Permission::FleetView];

pub fn routes(app: &AppState) -> Routes {
    Routes::new(app, "Search").get("/search", Requirement::AnyOf(SEARCH_PERMISSIONS), SEARCH, search)
}

const SEARCH: OperationDoc = OperationDoc {
    description: "Returns only workers, jobs and configurations that the caller may see. An empty query has no results.",
    problems: &["out_of_range"],
    ..OperationDoc::new("search", "Searches workers, jobs and configurations by a part of their name or ID.")
};

async fn search(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<SearchPage>, ApiError> {
    Ok(Json(app.services.search.search(&principal, &query).await?))
}
