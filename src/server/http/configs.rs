//! `/api/configs`

use app::domain::access::Permission;
use app::protocol::agents::ReportResponse;
use app::protocol::configs::{ConfigBundle, ConfigDetail, ConfigView, ConfigsPage, RevisionsPage};
use axum::extract::State;
use axum::{Extension, Json};

use super::problem::ApiError;
use super::routes::Routes;
use crate::http::edge::conditional::{IfMatch, IfNoneMatch, IfNoneMatchAny, TaggedResponse};
use crate::http::edge::extractors::Path;
use crate::http::edge::json::Json as Body;
use crate::http::edge::limits;
use crate::http::edge::request::caller_from_principal;
use crate::http::operation::doc::OperationDoc;
use crate::http::state::AppState;
use crate::service::access::{Principal, Requirement};
use crate::service::configs::ConfigPrecondition;

pub fn routes(app: &AppState) -> Routes {
    let (view_configs, edit_configs) =
        (Requirement::Permission(Permission::ConfigView), Requirement::Permission(Permission::ConfigEdit));
    Routes::new(app, "Configurations")
        .get("/configs", view_configs, LIST, list)
        .get("/configs/{name}", view_configs, SHOW, show)
        .get("/configs/{name}/revisions", view_configs, REVISIONS, revisions)
        .get("/configs/{name}/revisions/{revision}", view_configs, SHOW_REVISION, show_revision)
        .put("/configs/{name}", edit_configs, PUT, put)
        .delete("/configs/{name}", edit_configs, DELETE, delete)
        .layer(|router| limits::limit_body(router, limits::CONFIG))
}

const LIST: OperationDoc = OperationDoc::new("listConfigs", "Lists configurations, by name.");

async fn list(State(app): State<AppState>) -> Result<Json<ConfigsPage>, ApiError> {
    Ok(Json(app.services.configs.configs().await?))
}

const SHOW: OperationDoc = OperationDoc {
    problems: &["config_not_found"],
    ..OperationDoc::new("getConfig", "Shows a configuration's newest revision, with its files.")
};

async fn show(
    State(app): State<AppState>,
    Path(name): Path<String>,
    if_none_match: IfNoneMatch,
) -> Result<TaggedResponse<ConfigDetail>, ApiError> {
    let config = app.services.configs.config(&name).await?;
    Ok(if_none_match.tagged(Some(&config.config.revision.to_string()), config))
}

const REVISIONS: OperationDoc = OperationDoc {
    description: "Jobs keep the revision that they were submitted with, so a deleted configuration may still have revisions.",
    problems: &["config_not_found"],
    ..OperationDoc::new("listConfigRevisions", "Lists the revisions of a configuration, newest first.")
};

async fn revisions(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Result<Json<RevisionsPage>, ApiError> {
    Ok(Json(app.services.configs.revisions(&principal, &name).await?))
}

const SHOW_REVISION: OperationDoc = OperationDoc {
    description: "A revision never changes.",
    problems: &["config_not_found"],
    ..OperationDoc::new("getConfigRevision", "Shows one revision of a configuration, with its files.")
};

async fn show_revision(
    State(app): State<AppState>,
    Path((name, revision)): Path<(String, u32)>,
) -> Result<Json<ConfigDetail>, ApiError> {
    Ok(Json(app.services.configs.config_at(&name, revision).await?))
}

const PUT: OperationDoc = OperationDoc {
    description: "Existing jobs keep the revision that they were submitted with. A configuration of another \
             user requires `config.manage`; without it, use another name.",
    problems: &[
        "config_not_yours",
        "invalid_name",
        "config_code",
        "invalid_path",
        "disk_full",
        "limit_reached",
        "config_json_missing",
        "config_json_broken",
        "too_large",
    ],
    ..OperationDoc::new("putConfig", "Stores a configuration, or a new revision of it.")
};

async fn put(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    IfMatch(precondition): IfMatch,
    IfNoneMatchAny(must_be_new): IfNoneMatchAny,
    Body(bundle): Body<ConfigBundle>,
) -> Result<Json<ConfigView>, ApiError> {
    let precondition = if must_be_new { ConfigPrecondition::Absent } else { precondition.into() };
    Ok(Json(app.services.configs.put_config(caller_from_principal(&principal), name, bundle, precondition).await?))
}

const DELETE: OperationDoc = OperationDoc {
    description: "Jobs that use it are not affected. A configuration of another user requires `config.manage`.",
    problems: &["config_not_yours", "config_not_found"],
    ..OperationDoc::new("deleteConfig", "Deletes a configuration.")
};

async fn delete(
    State(app): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    IfMatch(precondition): IfMatch,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.configs.delete_config(caller_from_principal(&principal), name, precondition.into()).await?;
    Ok(Json(ReportResponse { success: true }))
}
