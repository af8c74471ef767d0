//! `/api/workers/*`: the API of agents, under one prefix for firewall rules.

mod agent;
mod checkpoint;
mod job;
mod stream;

use axum::extract::DefaultBodyLimit;

use super::routes::{RouteAccess, Routes};
use crate::http::edge::limits;
use crate::http::state::AppState;
use crate::service::workers::tokens::TokenUse;

pub fn routes(app: &AppState) -> Routes {
    let none = || Routes::new(app, "Agents");
    let agent = none()
        .post("/workers/register", RouteAccess::Registration, agent::REGISTER, agent::register)
        .get("/workers/stream", RouteAccess::Worker(TokenUse::Listen), stream::STREAM, stream::stream)
        .get("/workers/next", RouteAccess::Worker(TokenUse::Work), stream::NEXT, stream::next)
        .get("/workers/queue", RouteAccess::Worker(TokenUse::Check), agent::HAS_JOBS, agent::has_jobs)
        .post("/workers/disconnect", RouteAccess::Worker(TokenUse::Work), agent::DISCONNECT, agent::disconnect)
        .post("/workers/job/{id}/status", RouteAccess::Job, job::STATUS, job::status)
        .get("/workers/job/{id}/bundle", RouteAccess::Job, job::BUNDLE, job::bundle)
        .get(
            "/workers/job/{id}/checkpoint",
            RouteAccess::Job,
            checkpoint::RESUME_CHECKPOINT,
            checkpoint::resume_checkpoint,
        )
        .get("/workers/job/{id}/checkpoint/{*path}", RouteAccess::Job, checkpoint::RESUME_FILE, checkpoint::resume_file)
        .post("/workers/job/{id}/secrets", RouteAccess::Job, job::SECRETS, job::secrets)
        .layer(|router| limits::limit_body(router, limits::API));
    let heartbeat = none()
        .post("/workers/heartbeat", RouteAccess::Worker(TokenUse::Work), agent::HEARTBEAT, agent::heartbeat)
        .layer(|router| limits::limit_body(router, limits::HEARTBEAT));
    let progress = none()
        .post("/workers/job/{id}/progress", RouteAccess::Job, job::PROGRESS, job::progress)
        .post(
            "/workers/job/{id}/checkpoint",
            RouteAccess::Job,
            checkpoint::COMPLETE_CHECKPOINT,
            checkpoint::complete_checkpoint,
        )
        .layer(|router| limits::limit_body(router, limits::PROGRESS));
    let logs = none()
        .put("/workers/job/{id}/logs", RouteAccess::Job, job::LOGS, job::logs)
        .layer(|router| limits::limit_body(router, limits::LOG_CHUNK));
    // The size of files is limited while they arrive.
    let artifacts = none()
        .put("/workers/job/{id}/artifacts/{*path}", RouteAccess::Job, job::ARTIFACT, job::artifact)
        .get("/workers/job/{id}/artifacts/{*path}", RouteAccess::Job, job::UPLOAD_PROGRESS, job::upload_progress)
        .layer(|router| router.layer(DefaultBodyLimit::disable()));
    agent.merge(heartbeat).merge(progress).merge(logs).merge(artifacts)
}
