//! `GET /api/overview`

use app::domain::access::Permission;
use app::protocol::overview::OverviewView;
use axum::extract::State;
use axum::{Extension, Json};

use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The route.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Workers").get("/overview", Needs::To(Permission::AdminWorkers), SHOW, show)
}

const SHOW: Doc = Doc {
    detail: "Of jobs only those count that the caller may see.",
    ..Doc::of("getOverview", "Says how the fleet stands, and what somebody should look at.")
};

async fn show(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<OverviewView>, ApiError> {
    Ok(Json(app.core.overview(&person).await?))
}
