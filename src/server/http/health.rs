//! `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: how it does.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::metrics::{metrics, open_metrics};
use super::request;
use crate::service::readiness::Found;
use crate::state::App;

/// The routes. The first two are open to everybody and tell nobody anything.
pub fn routes() -> Router<App> {
    probes()
        .route("/api/cloud/health/live", get(healthz))
        .route("/api/cloud/health/ready", get(readyz))
        .route("/metrics", get(metrics))
}

/// What a listener of its own answers (`--metrics-listen`), and nothing else. Who reaches it may read it all.
pub fn apart(app: App) -> Router {
    let routes = probes().route("/metrics", get(open_metrics));
    routes.layer(from_fn_with_state(app.clone(), request::in_context)).with_state(app)
}

fn probes() -> Router<App> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

async fn healthz() -> impl IntoResponse {
    ([(header::CACHE_CONTROL, "no-store")], Json(json!({"status": "ok"})))
}

async fn readyz(State(app): State<App>) -> impl IntoResponse {
    let mut checks = app.core.readiness().await;
    let stopping = app.shutdown.is_cancelled();
    checks.push(("stopping", if stopping { Found::Wrong("The server is about to end.") } else { Found::Well }));
    let wrong = checks.iter().any(|(_, found)| matches!(found, Found::Wrong(_)));
    let worth = checks.iter().any(|(_, found)| matches!(found, Found::Worth(_)));
    let (status, word) = match (wrong, worth) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
        // Who is not sent here any more could not report what runs.
        (false, true) => (StatusCode::OK, "warning"),
        (false, false) => (StatusCode::OK, "ok"),
    };
    let checks: Map<String, Value> = checks.iter().map(|(name, found)| ((*name).to_owned(), told(*found))).collect();
    (status, [(header::CACHE_CONTROL, "no-store")], Json(json!({"status": word, "checks": checks})))
}

fn told(found: Found) -> Value {
    match found {
        Found::Well => json!({"status": "ok"}),
        Found::Worth(why) => json!({"status": "warning", "detail": why}),
        Found::Wrong(why) => json!({"status": "failed", "detail": why}),
    }
}
