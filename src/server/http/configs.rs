//! `/api/configs`

use app::domain::access::Permission;
use app::protocol::configs::{Bundle, ConfigDetail, ConfigView, ConfigsPage, RevisionsPage};
use app::protocol::worker::Accepted;
use axum::extract::State;
use axum::{Extension, Json};

use super::address::Path;
use super::conditional::{IfMatch, IfNew, IfNoneMatch, Tagged};
use super::json::Json as Body;
use super::limits;
use super::openapi::doc::Doc;
use super::problem::ApiError;
use super::request::caller;
use super::routes::Routes;
use crate::service::access::{Needs, Person};
use crate::service::configs::Seen;
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let (sees, edits) = (Needs::To(Permission::ConfigView), Needs::To(Permission::ConfigEdit));
    Routes::new(app, "Configurations")
        .get("/configs", sees, LIST, list)
        .get("/configs/{name}", sees, SHOW, show)
        .get("/configs/{name}/revisions", sees, REVISIONS, revisions)
        .get("/configs/{name}/revisions/{revision}", sees, SHOW_REVISION, show_revision)
        .put("/configs/{name}", edits, PUT, put)
        .delete("/configs/{name}", edits, DELETE, delete)
        .within(|router| limits::bounded(router, limits::CONFIG))
}

const LIST: Doc = Doc::of("listConfigs", "Lists configurations, by name.");

async fn list(State(app): State<App>) -> Result<Json<ConfigsPage>, ApiError> {
    Ok(Json(app.core.configs().await?))
}

const SHOW: Doc = Doc {
    problems: &["config_not_found"],
    ..Doc::of("getConfig", "Shows a configuration's newest revision, with its files.")
};

async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    known: IfNoneMatch,
) -> Result<Tagged<ConfigDetail>, ApiError> {
    let config = app.core.config(&name).await?;
    Ok(known.tagged(Some(&config.config.revision.to_string()), config))
}

const REVISIONS: Doc = Doc {
    detail: "Jobs keep the revision that they were submitted with, so that of a removed configuration there still are some.",
    problems: &["config_not_found"],
    ..Doc::of("listConfigRevisions", "Lists the revisions of a configuration, the newest first.")
};

async fn revisions(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
) -> Result<Json<RevisionsPage>, ApiError> {
    Ok(Json(app.core.revisions(&person, &name).await?))
}

const SHOW_REVISION: Doc = Doc {
    detail: "A revision never changes.",
    problems: &["config_not_found"],
    ..Doc::of("getConfigRevision", "Shows one revision of a configuration, with its files.")
};

async fn show_revision(
    State(app): State<App>,
    Path((name, revision)): Path<(String, u32)>,
) -> Result<Json<ConfigDetail>, ApiError> {
    Ok(Json(app.core.config_at(&name, revision).await?))
}

const PUT: Doc = Doc {
    detail: "Jobs that were submitted before keep the revision that they were submitted with. A configuration of somebody \
             else takes `config.manage`; without it, store yours under another name.",
    problems: &[
        "config_not_yours",
        "invalid_name",
        "config_code",
        "invalid_path",
        "disk_full",
        "limit_reached",
        "config_json_missing",
        "config_json_broken",
        "too_much",
    ],
    ..Doc::of("putConfig", "Adds a configuration, or a new revision of it.")
};

async fn put(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    IfMatch(seen): IfMatch,
    IfNew(new): IfNew,
    Body(bundle): Body<Bundle>,
) -> Result<Json<ConfigView>, ApiError> {
    let seen = if new { Seen::Nothing } else { seen.into() };
    Ok(Json(app.core.put_config(caller(&person), name, bundle, seen).await?))
}

const DELETE: Doc = Doc {
    detail: "Jobs that use it are not touched. A configuration of somebody else takes `config.manage`.",
    problems: &["config_not_yours", "config_not_found"],
    ..Doc::of("deleteConfig", "Removes a configuration from the list.")
};

async fn delete(
    State(app): State<App>,
    Extension(person): Extension<Person>,
    Path(name): Path<String>,
    IfMatch(seen): IfMatch,
) -> Result<Json<Accepted>, ApiError> {
    app.core.delete_config(caller(&person), name, seen.into()).await?;
    Ok(Json(Accepted { success: true }))
}
