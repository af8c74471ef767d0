//! Registration, heartbeat and disconnect.

use app::domain::audit::rate_limit::RejectionKind;
use app::domain::ids::WorkerId;
use app::protocol::agents::{
    DisconnectRequest, HasJobsResponse, HeartbeatRequest, HeartbeatResponse, RegisterRequest, RegisterResponse,
    ReportResponse,
};
use axum::extract::State;
use axum::{Extension, Json};
use serde_json::json;

use crate::http::edge::json::{Json as Body, OptionalJson};
use crate::http::edge::request::{Peer, caller_from_actor, peer_ip, worker_actor};
use crate::http::operation::doc::OperationDoc;
use crate::http::problem::ApiError;
use crate::http::state::AppState;
use crate::service::workers::tokens::WorkerAuth;

pub const REGISTER: OperationDoc = OperationDoc {
    problems: &[
        "invalid_name",
        "invalid_labels",
        "out_of_range",
        "too_large",
        "token_in_use",
        "older_agent_rejected",
        "too_many_registrations",
    ],
    ..OperationDoc::new("register", "Registers an agent with its GPUs; returns the desired state.")
};

/// `POST /api/workers/register`
pub async fn register(
    State(app): State<AppState>,
    Extension(auth): Extension<WorkerAuth>,
    peer: Option<Extension<Peer>>,
    body: Result<Body<RegisterRequest>, ApiError>,
) -> Result<Json<RegisterResponse>, ApiError> {
    let worker = auth.worker.clone();
    let registered = match body {
        Ok(Body(register)) => app
            .services
            .agents
            .register(caller_from_actor(worker_actor(&worker)), auth, register)
            .await
            .map_err(ApiError::from),
        Err(error) => Err(error),
    };
    // If the token is in use, the conflict is in the audit log already.
    if let Err(error) = &registered
        && error.is_client_error()
        && error.code() != "token_in_use"
    {
        let (caller, detail) = (caller_from_actor(worker_actor(&worker)), json!({"reason": error.code()}));
        app.services
            .audit
            .record_rejection(caller, RejectionKind::Registration, peer_ip(peer), worker.as_str(), detail)
            .await;
    }
    registered.map(Json)
}

pub const HEARTBEAT: OperationDoc = OperationDoc {
    problems: &["invalid_status", "other_worker", "too_large", "not_registered", "token_in_use"],
    ..OperationDoc::new("heartbeat", "Sends a heartbeat; returns the desired state.")
};

/// `POST /api/workers/heartbeat`
pub async fn heartbeat(
    State(app): State<AppState>,
    Extension(auth): Extension<WorkerAuth>,
    Body(request): Body<HeartbeatRequest>,
) -> Result<Json<HeartbeatResponse>, ApiError> {
    Ok(Json(app.services.agents.heartbeat(caller_from_actor(worker_actor(&auth.worker)), auth, request).await?))
}

pub const HAS_JOBS: OperationDoc = OperationDoc::new("hasJobs", "Returns whether an offer waits, for older agents.");

/// `GET /api/workers/queue`: whether jobs wait; for older agents.
pub async fn has_jobs(
    State(app): State<AppState>,
    Extension(auth): Extension<WorkerAuth>,
) -> Result<Json<HasJobsResponse>, ApiError> {
    let desired = app.services.agents.desired(&auth).await?;
    Ok(Json(HasJobsResponse { has_jobs: !desired.offers.is_empty() }))
}

pub const DISCONNECT: OperationDoc = OperationDoc {
    problems: &["other_worker"],
    ..OperationDoc::new("disconnect", "Disconnects an agent, with the attempts that keep running.")
};

/// `POST /api/workers/disconnect`
pub async fn disconnect(
    State(app): State<AppState>,
    Extension(worker): Extension<WorkerId>,
    OptionalJson(request): OptionalJson<DisconnectRequest>,
) -> Result<Json<ReportResponse>, ApiError> {
    app.services.agents.disconnect(caller_from_actor(worker_actor(&worker)), worker, request).await?;
    Ok(Json(ReportResponse { success: true }))
}
