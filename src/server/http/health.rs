//! `/healthz`: the process answers. `/readyz`: it can do its work.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use crate::state::App;

/// The routes. They are open to everybody and tell nobody anything.
pub fn routes() -> Router<App> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

async fn healthz() -> impl IntoResponse {
    Json(json!({"status": "ok"}))
}

async fn readyz(State(app): State<App>) -> impl IntoResponse {
    let database = app.core.check_database().await;
    let stopping = app.shutdown.is_cancelled();
    let word = |good: bool| if good { "ok" } else { "failed" };
    let ready = database.is_ok() && !stopping;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"status": word(ready), "checks": {"database": word(database.is_ok()), "stopping": stopping}})))
}
