//! `/api/configs`

use app::domain::access::Permission;
use app::protocol::configs::{Bundle, ConfigDetail, ConfigView, ConfigsPage};
use app::protocol::worker::Accepted;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::{Extension, Json};

use super::json::Json as Body;
use super::limits;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let (sees, edits) = (Needs::To(Permission::ConfigView), Needs::To(Permission::ConfigEdit));
    Routes::new(app)
        .get("/configs", sees, list)
        .get("/configs/{name}", sees, show)
        .put("/configs/{name}", edits, put)
        .delete("/configs/{name}", edits, delete)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::CONFIG)))
}

async fn list(State(app): State<App>) -> Result<Json<ConfigsPage>, ApiError> {
    Ok(Json(app.core.configs().await?))
}

async fn show(State(app): State<App>, Path(name): Path<String>) -> Result<Json<ConfigDetail>, ApiError> {
    Ok(Json(app.core.config(&name).await?))
}

async fn put(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Body(bundle): Body<Bundle>,
) -> Result<Json<ConfigView>, ApiError> {
    Ok(Json(app.core.put_config(caller(&person), name, bundle).await?))
}

async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.delete_config(caller(&person), name).await?;
    Ok(Json(Accepted { success: true }))
}
