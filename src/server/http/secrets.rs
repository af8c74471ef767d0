//! `/api/secrets`: values for jobs, which nobody reads back.

use app::domain::access::Permission;
use app::protocol::secrets::{PutSecret, SecretQuery, SecretView, SecretsPage};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::{Extension, Json};

use super::address::{Path, Query};
use super::json::Json as Body;
use super::limits;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let submits = Needs::To(Permission::JobSubmit);
    Routes::new(app, "Secrets")
        .get("/secrets", submits, LIST, list)
        .put("/secrets/{name}", submits, PUT, put)
        .delete("/secrets/{name}", submits, REMOVE, remove)
        .within(|router| limits::bounded(router, limits::API))
}

const LIST: Doc =
    Doc::of("listSecrets", "Lists what is kept for the caller's jobs and for everybody's, without the values.");

async fn list(State(app): State<App>, Extension(person): Extension<Person>) -> Result<Json<SecretsPage>, ApiError> {
    Ok(Json(app.core.secrets_page(&person).await?))
}

const PUT: Doc = Doc {
    detail: "The name is that of a variable in the job's environment; `hf_token` is `HF_TOKEN`. One that is there is \
             replaced. A shared one takes `secret.manage`, and a browser's session must have given its password in \
             the last 15 minutes.",
    problems: &[
        "password_needed",
        "invalid_secret_name",
        "out_of_range",
        "too_much",
        "permission_denied",
        "secret_key_unavailable",
    ],
    ..Doc::of("putSecret", "Keeps a value for jobs; nobody can read it back.")
};

async fn put(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Body(put): Body<PutSecret>,
) -> Result<Json<SecretView>, ApiError> {
    check_shared(&app, &person, put.shared)?;
    Ok(Json(app.core.put_secret(caller(&person), &person, &name, put).await?))
}

const REMOVE: Doc = Doc {
    detail: "Attempts that run keep what they were given. A shared one takes `secret.manage`, and a browser's \
             session must have given its password in the last 15 minutes.",
    problems: &["password_needed", "secret_not_found", "permission_denied"],
    ..Doc::of("deleteSecret", "Removes a secret.")
};

async fn remove(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    Query(query): Query<SecretQuery>,
) -> Result<Json<Accepted>, ApiError> {
    check_shared(&app, &person, query.shared)?;
    app.core.remove_secret(caller(&person), &person, &name, query.shared).await?;
    Ok(Json(Accepted { success: true }))
}

/// What everybody's jobs can use takes a permission and a recent password to change.
pub fn check_shared(app: &App, person: &Person, shared: bool) -> Result<(), crate::service::refusal::Refusal> {
    if shared {
        person.need(Permission::SecretManage)?;
        app.core.need_proof(person)?;
    }
    Ok(())
}
