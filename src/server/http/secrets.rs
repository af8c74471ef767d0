//! `/api/secrets`: values for jobs, which nobody reads back.

use app::domain::access::Permission;
use app::protocol::secrets::{PutSecret, SecretQuery, SecretView, SecretsPage};
use app::protocol::worker::Accepted;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
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
    let submits = Needs::To(Permission::JobSubmit);
    Routes::new(app)
        .get("/secrets", submits, list)
        .put("/secrets/{name}", submits, put)
        .delete("/secrets/{name}", submits, remove)
        .within(|router| router.layer(DefaultBodyLimit::max(limits::API)))
}

async fn list(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<SecretsPage>, ApiError> {
    Ok(Json(app.core.secrets_page(&person).await?))
}

async fn put(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Body(put): Body<PutSecret>,
) -> Result<Json<SecretView>, ApiError> {
    check_shared(&person, put.shared)?;
    Ok(Json(app.core.put_secret(caller(&person), &person, &name, put).await?))
}

async fn remove(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Query(query): Query<SecretQuery>,
) -> Result<Json<Accepted>, ApiError> {
    check_shared(&person, query.shared)?;
    app.core.remove_secret(caller(&person), &person, &name, query.shared).await?;
    Ok(Json(Accepted { success: true }))
}

/// What everybody's jobs are given is not for everybody to change.
pub fn check_shared(person: &Person, shared: bool) -> Result<(), crate::service::refusal::Refusal> {
    if shared { person.need(Permission::SecretManage) } else { Ok(()) }
}
