//! The HTTP layer: routes, authorization, and error responses.
//!
//! Every route belongs to exactly one group, and each group has one guard ([`guards`]): [`agents`] routes take a
//! worker's or a job's token, [`user_routes`] take a user's session or API token and the permission that each route
//! names ([`routes`]), pages take a browser's session. There are no routes outside of a group.

mod access;
mod agents;
mod audit;
pub mod bulk;
mod configs;
mod docs;
pub mod edge;
mod events;
pub mod guards;
mod jobs;
pub(super) mod logs;
pub mod openapi;
mod operation;
mod overview;
pub mod problem;
pub mod render_limiter;
pub mod request_context;
pub mod routes;
mod search;
mod secrets;
mod shares;
pub mod site;
pub mod state;
pub mod system;
pub mod ui;
mod usage;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use self::openapi::ApiDescription;
use self::routes::{DeclaredRoute, Routes};
use self::state::AppState;
use problem::{cross_site, no_such_route, panicked};

/// Returns the router of the whole server.
pub fn router(app: AppState) -> Router {
    let description = Arc::new(ApiDescription::new(declared_routes(&app), docs::render_page));
    let api = Router::new()
        .merge(user_routes(&app).into_router().route_layer(from_fn_with_state(app.clone(), guards::require_principal)))
        .merge(agents::routes(&app).into_router())
        .merge(openapi::with_description(openapi::routes(&app), &description))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(unknown_route);
    Router::new()
        .nest("/api", api)
        .merge(system::health::routes(&app).into_router())
        .merge(openapi::with_description(docs::routes(&app), &description))
        .merge(ui::routes(&app))
        .layer(CsrfLayer::new().with_rejection_response(|_| cross_site().into_response()))
        .layer(from_fn_with_state(app.clone(), guards::require_known_host))
        .layer(from_fn(edge::min_transfer_rate::enforce_transfer_rate))
        .layer(CatchPanicLayer::custom(|_| panicked().into_response()))
        .layer(from_fn_with_state(app.clone(), ui::error_page::render_problems))
        .layer(from_fn_with_state(app.clone(), edge::request::with_request_context))
        .with_state(app)
}

/// Returns the routes of users and their scripts, below `/api`.
pub fn user_routes(app: &AppState) -> Routes {
    workers::routes(app)
        .merge(access::users::routes(app))
        .merge(overview::routes(app))
        .merge(access::account::routes(app))
        .merge(access::factors::routes(app))
        .merge(audit::routes(app))
        .merge(usage::routes(app))
        .merge(system::routes(app))
        .merge(jobs::routes(app))
        .merge(configs::routes(app))
        .merge(secrets::routes(app))
        .merge(shares::routes(app))
        .merge(search::routes(app))
        .merge(events::routes(app))
        .merge(access::session::routes(app))
}

/// Returns all documented routes with their full paths.
pub fn declared_routes(app: &AppState) -> Vec<DeclaredRoute> {
    let api = [user_routes(app), agents::routes(app), openapi::routes(app)];
    let outside_api = [system::health::routes(app), ui::login_routes(app), docs::routes(app)];
    let api = api.iter().flat_map(|routes| routes.declared_below("/api"));
    api.chain(outside_api.iter().flat_map(|routes| routes.declared_below(""))).collect()
}

async fn unknown_route(OriginalUri(uri): OriginalUri) -> Response {
    no_such_route(uri.path()).into_response()
}

async fn method_not_allowed() -> Response {
    problem::method_not_allowed().into_response()
}
