//! `/api/secrets`: values for jobs, write-only.

use app::domain::access::Permission;
use app::protocol::agents::ReportResponse;
use app::protocol::secrets::{PutSecret, SecretQuery, SecretView, SecretsPage};
use axum::extract::State;
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::extractors::{Path, Query};
use crate::http::edge::json::Json as Body;
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};

pub fn routes(app: &AppState) -> Routes {
    let submit_jobs = Requirement::Permission(Permission::JobSubmit);
    Routes::new(app, "Secrets")
        .get("/secrets", submit_jobs, LIST, list)
        .put("/secrets/{name}", submit_jobs, PUT, put)
        .delete("/secrets/{name}", submit_jobs, REMOVE, remove)
        .layer(|router| limits::limit_body(router, limits::API))
}

const LIST: OperationDoc =
    OperationDoc::new("listSecrets", "Lists the caller's and the shared secrets, without their values.");

async fn list(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<SecretsPage>, ApiError> {
    Ok(Json(app.services.secrets.secrets_page(&principal).await?))
}

const PUT: OperationDoc = OperationDoc {
    description: "The name is that of a variable in the job's environment; `hf_token` is `HF_TOKEN`. An existing one is \
             replaced. A shared one requires `secret.manage`, and a browser session must have confirmed its password in \
             the last 15 minutes.",
    problems: &[
        "password_needed",
        "invalid_secret_name",
        "out_of_range",
        "too_large",
        "permission_denied",
        "secret_key_unavailable",
    ],
    ..OperationDoc::new("putSecret", "Stores a secret for jobs; its value cannot be read back.")
};

async fn put(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Body(put): Body<PutSecret>,
) -> Result<Json<SecretView>, ApiError> {
    check_can_share(&app, &principal, put.shared)?;
    Ok(Json(app.services.secrets.put_secret(caller_from_principal(&principal), &principal, &name, put).await?))
}

const REMOVE: OperationDoc = OperationDoc {
    description: "Running attempts keep its value. A shared one requires `secret.manage`, and a browser's \
             session must have confirmed its password in the last 15 minutes.",
    problems: &["password_needed", "secret_not_found", "permission_denied"],
    ..OperationDoc::new("deleteSecret", "Deletes a secret.")
};

async fn remove(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    Query(query): Query<SecretQuery>,
) -> Result<Json<ReportResponse>, ApiError> {
    check_can_share(&app, &principal, query.shared)?;
    app.services.secrets.remove_secret(caller_from_principal(&principal), &principal, &name, query.shared).await?;
    Ok(Json(ReportResponse { success: true }))
}

/// Secrets that every user's jobs can use require a permission and a recent sign-in to change.
pub fn check_can_share(
    app: &AppState,
    principal: &Principal,
    shared: bool,
) -> Result<(), crate::service::error::ServiceError> {
    if shared {
        principal.require(Permission::SecretManage)?;
        app.services.access.require_recent_auth(principal)?;
    }
    Ok(())
}
