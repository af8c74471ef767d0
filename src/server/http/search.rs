//! `GET /api/search`

use app::domain::access::Permission;
use app::protocol::search::{SearchPage, SearchQuery};
use axum::extract::State;
use axum::{Extension, Json};

use super::address::Query;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// What can be found takes one of these.
pub const FINDS: &[Permission] = &[Permission::JobViewOwn, Permission::ConfigView, Permission::AdminWorkers];

/// The route.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Search").get("/search", Needs::AnyOf(FINDS), SEARCH, search)
}

const SEARCH: Doc = Doc {
    detail: "Of workers, jobs and configurations only those that the caller may see. Nothing is found without a question.",
    problems: &["out_of_range"],
    ..Doc::of("search", "Finds workers, jobs and configurations by a few characters of them.")
};

async fn search(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Query(query): Query<SearchQuery>,
) -> Result<Json<SearchPage>, ApiError> {
    Ok(Json(app.core.search(&person, &query).await?))
}
