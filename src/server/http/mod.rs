//! The HTTP edge: routes, who may use them, and how refusals read.
//!
//! Every route belongs to exactly one group, and each group has one guard: [`worker`] routes take a worker's or a
//! job's token, those of [`people`] a person's or a script's and the permission that each names ([`routes`]), pages a
//! browser's session. What is in no group does not exist.

pub mod access;
mod account;
mod address;
mod admin;
pub mod arrival;
mod audit;
pub mod bulk;
mod conditional;
mod configs;
mod csv;
mod docs;
mod events;
mod factors;
mod headers;
pub mod health;
pub mod json;
mod limits;
mod metrics;
pub mod openapi;
mod overview;
mod pace;
pub mod problem;
mod queue;
pub mod request;
pub mod routes;
mod search;
mod secrets;
pub mod session;
mod session_cookie;
pub mod site;
pub mod system;
pub mod ui;
mod usage;
mod worker;

use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use self::openapi::Description;
use self::routes::{Declared, Routes};
use crate::state::App;
use problem::{cross_site, no_such_route, panicked};

/// Everything this server answers.
pub fn router(app: App) -> Router {
    let description = Arc::new(Description::of(declared(&app)));
    let api = Router::new()
        .merge(people(&app).into_router().route_layer(from_fn_with_state(app.clone(), access::person)))
        .merge(worker::routes(&app).into_router())
        .merge(openapi::with(openapi::routes(&app), &description))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(unknown_route);
    Router::new()
        .nest("/api", api)
        .merge(health::routes(&app).into_router())
        .merge(openapi::with(docs::routes(&app), &description))
        .merge(ui::routes(&app))
        .layer(CsrfLayer::new().with_rejection_response(|_| cross_site().into_response()))
        .layer(from_fn_with_state(app.clone(), access::known_host))
        .layer(from_fn(pace::paced))
        .layer(CatchPanicLayer::custom(|_| panicked().into_response()))
        .layer(from_fn_with_state(app.clone(), ui::trouble::shown))
        .layer(from_fn_with_state(app.clone(), request::in_context))
        .with_state(app)
}

/// What people and their scripts use, below `/api`.
pub fn people(app: &App) -> Routes {
    admin::routes(app)
        .and(overview::routes(app))
        .and(account::routes(app))
        .and(factors::routes(app))
        .and(audit::routes(app))
        .and(usage::routes(app))
        .and(system::routes(app))
        .and(queue::routes(app))
        .and(configs::routes(app))
        .and(secrets::routes(app))
        .and(search::routes(app))
        .and(events::routes(app))
        .and(session::routes(app))
}

/// Every route that is described, with its whole path.
pub fn declared(app: &App) -> Vec<Declared> {
    let api = [people(app), worker::routes(app), openapi::routes(app)];
    let beside = [health::routes(app), ui::entrances(app), docs::routes(app)];
    let api = api.iter().flat_map(|routes| routes.declared("/api"));
    api.chain(beside.iter().flat_map(|routes| routes.declared(""))).collect()
}

async fn unknown_route(OriginalUri(uri): OriginalUri) -> Response {
    no_such_route(uri.path()).into_response()
}

async fn method_not_allowed() -> Response {
    problem::method_not_allowed().into_response()
}
