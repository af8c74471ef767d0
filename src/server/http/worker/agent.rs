//! Registration, heartbeat, goodbye.

use app::domain::audit::flood::Refused;
use app::domain::ids::WorkerId;
use app::protocol::worker::{Accepted, Disconnect, HasJobs, Heartbeat, HeartbeatAnswer, Register, Registered};
use axum::extract::State;
use axum::{Extension, Json};
use serde_json::json;

use crate::http::json::{Json as Body, OptionalJson};
use crate::http::openapi::doc::Doc;
use crate::http::problem::ApiError;
use crate::http::request::{Peer, address, caller_named};
use crate::service::keys::WorkerKey;
use crate::state::App;

/// See [`register`].
pub const REGISTER: Doc = Doc {
    problems: &["invalid_name", "invalid_labels", "out_of_range", "too_much", "token_in_use", "older_agent_refused"],
    ..Doc::of("register", "Reports a worker's GPUs, and is told what should run there.")
};

/// `POST /api/workers/register`
pub async fn register(
    State(app): State<App>,
    Extension(key): Extension<WorkerKey>,
    peer: Option<Extension<Peer>>,
    body: Result<Body<Register>, ApiError>,
) -> Result<Json<Registered>, ApiError> {
    let worker = key.worker.clone();
    let registered = match body {
        Ok(Body(register)) => {
            app.core.register(caller_named(actor(&worker)), key, register).await.map_err(ApiError::from)
        }
        Err(error) => Err(error),
    };
    // Of a token that is in use, the alarm is on record already.
    if let Err(error) = &registered
        && error.is_refusal()
        && error.code() != "token_in_use"
    {
        let (by, detail) = (caller_named(actor(&worker)), json!({"reason": error.code()}));
        app.core.record_refused(by, Refused::Registration, address(peer), worker.as_str(), detail).await;
    }
    registered.map(Json)
}

/// See [`heartbeat`].
pub const HEARTBEAT: Doc = Doc {
    problems: &["invalid_status", "other_worker", "too_much", "not_registered", "token_in_use"],
    ..Doc::of("heartbeat", "Says that a worker lives, and is told the whole desired state.")
};

/// `POST /api/workers/heartbeat`
pub async fn heartbeat(
    State(app): State<App>,
    Extension(key): Extension<WorkerKey>,
    Body(beat): Body<Heartbeat>,
) -> Result<Json<HeartbeatAnswer>, ApiError> {
    Ok(Json(app.core.heartbeat(caller_named(actor(&key.worker)), key, beat).await?))
}

/// See [`queue`].
pub const QUEUE: Doc = Doc::of("hasJobs", "Says whether an offer waits, for older agents.");

/// `GET /api/workers/queue`: whether there is work; for older agents.
pub async fn queue(State(app): State<App>, Extension(key): Extension<WorkerKey>) -> Result<Json<HasJobs>, ApiError> {
    let desired = app.core.desired(&key).await?;
    Ok(Json(HasJobs { has_jobs: !desired.offers.is_empty() }))
}

/// See [`disconnect`].
pub const DISCONNECT: Doc = Doc {
    problems: &["other_worker"],
    ..Doc::of("disconnect", "Says that an agent leaves, and what it leaves running.")
};

/// `POST /api/workers/disconnect`
pub async fn disconnect(
    State(app): State<App>,
    Extension(worker): Extension<WorkerId>,
    OptionalJson(goodbye): OptionalJson<Disconnect>,
) -> Result<Json<Accepted>, ApiError> {
    app.core.disconnect(caller_named(actor(&worker)), worker, goodbye).await?;
    Ok(Json(Accepted { success: true }))
}

/// A worker's name in the audit trail.
pub fn actor(worker: &WorkerId) -> String {
    format!("worker:{worker}")
}
