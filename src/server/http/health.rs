//! `/healthz`: the process answers. `/readyz`: it can do its work. `/metrics`: how it does.

use std::collections::BTreeMap;

use app::domain::access::Permission;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::access;
use super::metrics::{METRICS, metrics};
use super::openapi::doc::{Answer, Doc};
use super::request;
use super::routes::{Access, Routes};
use crate::service::access::Needs;
use crate::service::readiness::Found;
use crate::state::App;

/// The routes. The first ones are open to everybody, and tell nobody anything.
pub fn routes(app: &App) -> Routes {
    ready(app, "/api/cloud/health/ready", Doc { id: "isReadyToo", ..READYZ })
        .and(probes(app))
        .get("/api/cloud/health/live", Access::Anyone, Doc { id: "isAliveToo", ..HEALTHZ }, healthz)
        .and(measured(app))
}

fn measured(app: &App) -> Routes {
    let known = from_fn_with_state(app.clone(), access::person);
    let routes = Routes::new(app, "Health").get("/metrics", Needs::To(Permission::OpsMetrics), METRICS, metrics);
    routes.within(|router| router.route_layer(known))
}

/// What a listener of its own answers (`--metrics-addr`), and nothing else. Who reaches it may read it all.
pub fn apart(app: App) -> Router {
    let routes = probes(&app).get("/metrics", Access::Anyone, METRICS, metrics).into_router();
    routes.layer(from_fn_with_state(app.clone(), request::in_context)).with_state(app)
}

fn probes(app: &App) -> Routes {
    ready(app, "/readyz", READYZ).get("/healthz", Access::Anyone, HEALTHZ, healthz)
}

/// The one that asks the database is not answered without end.
fn ready(app: &App, path: &str, doc: Doc) -> Routes {
    let limited = from_fn_with_state(app.clone(), access::stranger);
    let routes = Routes::new(app, "Health").get(path, Access::Anyone, doc, readyz);
    routes.within(|router| router.route_layer(limited))
}

/// Words by what was looked at.
type Words = BTreeMap<String, Value>;

const HEALTHZ: Doc = Doc {
    answers: &[Answer::json::<Words>(200, "It answers.")],
    ..Doc::of("isAlive", "Says whether the process answers.")
};

async fn healthz() -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(json!({"status": "ok"}))).into_response()
}

const READYZ: Doc = Doc {
    answers: &[
        Answer::json::<Words>(200, "It can; with `warning`, something is worth a look."),
        Answer::json::<Words>(503, "It cannot; `checks` say why."),
    ],
    ..Doc::of("isReady", "Says whether the server can do its work.")
};

async fn readyz(State(app): State<App>) -> Response {
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
    (status, [(header::CACHE_CONTROL, "no-store")], Json(json!({"status": word, "checks": checks}))).into_response()
}

fn told(found: Found) -> Value {
    match found {
        Found::Well => json!({"status": "ok"}),
        Found::Worth(why) => json!({"status": "warning", "detail": why}),
        Found::Wrong(why) => json!({"status": "failed", "detail": why}),
    }
}
