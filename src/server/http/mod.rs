//! The HTTP edge: routes, who may use them, and how refusals read.
//!
//! Every route belongs to exactly one group, and each group has one guard: [`worker`] routes take a worker's or a
//! job's token, [`admin`], [`queue`] and the others below `/api` a person's or a script's, pages a browser's session.
//! What is in no group does not exist.

pub mod access;
mod admin;
pub mod arrival;
mod configs;
mod events;
mod health;
pub mod json;
mod limits;
pub mod problem;
mod queue;
pub mod request;
mod session;
mod session_cookie;
pub mod site;
mod ui;
mod worker;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;

use crate::state::App;
use problem::{cross_site, no_such_route, panicked};

/// Everything this server answers.
pub fn router(app: App) -> Router {
    let people = Router::new()
        .merge(admin::routes())
        .merge(queue::routes())
        .merge(configs::routes())
        .merge(events::routes())
        .merge(session::routes())
        .route_layer(from_fn_with_state(app.clone(), access::person));
    let api = Router::new()
        .merge(people)
        .merge(worker::routes(&app))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(unknown_route);
    Router::new()
        .nest("/api", api)
        .merge(health::routes())
        .merge(ui::routes(&app))
        .layer(CsrfLayer::new().with_rejection_response(|_| cross_site().into_response()))
        .layer(from_fn_with_state(app.clone(), access::known_host))
        .layer(CatchPanicLayer::custom(|_| panicked().into_response()))
        .layer(from_fn_with_state(app.clone(), request::in_context))
        .with_state(app)
}

async fn unknown_route(request: Request) -> Response {
    no_such_route(request.uri().path()).into_response()
}

async fn method_not_allowed() -> Response {
    problem::method_not_allowed().into_response()
}
