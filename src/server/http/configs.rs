//! `/api/configs`

use app::protocol::configs::{Bundle, ConfigDetail, ConfigView, ConfigsPage};
use app::protocol::worker::Accepted;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::routing::get;
use axum::{Extension, Json, Router};

use super::access::Person;
use super::json::Json as Body;
use super::limits;
use super::problem::ApiError;
use super::request::caller;
use crate::state::App;

/// The routes.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/configs", get(list))
        .route("/configs/{name}", get(show).put(put).delete(delete))
        .layer(DefaultBodyLimit::max(limits::CONFIG))
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
    Ok(Json(app.core.put_config(caller(person.name), name, bundle).await?))
}

async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.delete_config(caller(person.name), name).await?;
    Ok(Json(Accepted { success: true }))
}
