//! `/healthz` (liveness), `/readyz` (readiness) and `/metrics`.

use std::collections::BTreeMap;

use app::domain::access::Permission;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::metrics::{METRICS, metrics};
use crate::http::edge::request;
use crate::http::guards;
use crate::http::operation::doc::{OperationDoc, ResponseDoc};
use crate::http::routes::{RouteAccess, Routes};
use crate::http::state::AppState;
use crate::service::access::Requirement;
use crate::service::system::readiness::ReadinessResult;

/// The first routes are public and reveal no details.
pub fn routes(app: &AppState) -> Routes {
    readiness_route(app, "/api/cloud/health/ready", OperationDoc { id: "isReadyToo", ..READYZ })
        .merge(probe_routes(app))
        .get("/api/cloud/health/live", RouteAccess::Anyone, OperationDoc { id: "isAliveToo", ..HEALTHZ }, healthz)
        .merge(metrics_routes(app))
}

fn metrics_routes(app: &AppState) -> Routes {
    let require_principal = from_fn_with_state(app.clone(), guards::require_principal);
    let routes =
        Routes::new(app, "Health").get("/metrics", Requirement::Permission(Permission::OpsMetrics), METRICS, metrics);
    routes.layer(|router| router.route_layer(require_principal))
}

/// Serves `--metrics-addr`: health and metrics only, without authentication.
pub fn metrics_router(app: AppState) -> Router {
    let routes = probe_routes(&app).get("/metrics", RouteAccess::Anyone, METRICS, metrics).into_router();
    routes.layer(from_fn_with_state(app.clone(), request::with_request_context)).with_state(app)
}

fn probe_routes(app: &AppState) -> Routes {
    readiness_route(app, "/readyz", READYZ).get("/healthz", RouteAccess::Anyone, HEALTHZ, healthz)
}

/// Rate-limited, as it queries the database.
fn readiness_route(app: &AppState, path: &str, doc: OperationDoc) -> Routes {
    let rate_limit = from_fn_with_state(app.clone(), guards::limit_anonymous);
    let routes = Routes::new(app, "Health").get(path, RouteAccess::Anyone, doc, readyz);
    routes.layer(|router| router.route_layer(rate_limit))
}

/// Results by check.
type CheckResults = BTreeMap<String, Value>;

const HEALTHZ: OperationDoc = OperationDoc {
    responses: &[ResponseDoc::json::<CheckResults>(200, "The process responds.")],
    ..OperationDoc::new("isAlive", "Checks that the process responds.")
};

async fn healthz() -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(json!({"status": "ok"}))).into_response()
}

const READYZ: OperationDoc = OperationDoc {
    responses: &[
        ResponseDoc::json::<CheckResults>(200, "Ready; `warning` if something needs attention."),
        ResponseDoc::json::<CheckResults>(503, "Not ready; `checks` contains the reason."),
    ],
    ..OperationDoc::new("isReady", "Checks that the server is ready.")
};

async fn readyz(State(app): State<AppState>) -> Response {
    let mut checks = app.services.system.readiness().await;
    let stopping = app.shutdown.is_cancelled();
    checks.push((
        "stopping",
        if stopping { ReadinessResult::Failure("The server is shutting down.") } else { ReadinessResult::Pass },
    ));
    let has_failure = checks.iter().any(|(_, result)| matches!(result, ReadinessResult::Failure(_)));
    let has_warning = checks.iter().any(|(_, result)| matches!(result, ReadinessResult::Warning(_)));
    let (status, text) = match (has_failure, has_warning) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
        (false, true) => (StatusCode::OK, "warning"),
        (false, false) => (StatusCode::OK, "ok"),
    };
    let checks: Map<String, Value> =
        checks.iter().map(|(name, result)| ((*name).to_owned(), check_value(*result))).collect();
    (status, [(header::CACHE_CONTROL, "no-store")], Json(json!({"status": text, "checks": checks}))).into_response()
}

fn check_value(result: ReadinessResult) -> Value {
    match result {
        ReadinessResult::Pass => json!({"status": "ok"}),
        ReadinessResult::Warning(detail) => json!({"status": "warning", "detail": detail}),
        ReadinessResult::Failure(detail) => json!({"status": "failed", "detail": detail}),
    }
}
