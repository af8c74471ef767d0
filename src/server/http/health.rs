//! `/healthz`: the process answers. `/readyz`: it can do its work.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::openapi::doc::{Answer, Doc};
use super::routes::{Access, Routes};
use crate::state::App;

/// The routes. They are open to everybody and tell nobody anything.
pub fn routes(app: &App) -> Routes {
    Routes::new(app, "Health").get("/healthz", Access::Anyone, HEALTHZ, healthz).get(
        "/readyz",
        Access::Anyone,
        READYZ,
        readyz,
    )
}

/// Words by what was looked at.
type Words = BTreeMap<String, Value>;

const HEALTHZ: Doc = Doc {
    answers: &[Answer::json::<Words>(200, "It answers.")],
    ..Doc::of("isAlive", "Says whether the process answers.")
};

async fn healthz() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

const READYZ: Doc = Doc {
    answers: &[Answer::json::<Words>(200, "It can."), Answer::json::<Words>(503, "It cannot; `checks` say why.")],
    ..Doc::of("isReady", "Says whether the server can do its work.")
};

async fn readyz(State(app): State<App>) -> Response {
    let database = app.core.check_database().await;
    let stopping = app.shutdown.is_cancelled();
    let word = |good: bool| if good { "ok" } else { "failed" };
    let ready = database.is_ok() && !stopping;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let checks = json!({"database": word(database.is_ok()), "stopping": stopping});
    (status, Json(json!({"status": word(ready), "checks": checks}))).into_response()
}
