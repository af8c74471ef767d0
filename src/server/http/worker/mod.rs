//! `/api/workers/*`: what agents use. One firewall rule covers it all.

mod agent;
mod checkpoint;
mod job;
mod stream;

use axum::extract::DefaultBodyLimit;

pub use self::agent::actor;
use super::limits;
use super::routes::{Access, Routes};
use crate::service::keys::TokenUse;
use crate::state::App;

/// The routes.
pub fn routes(app: &App) -> Routes {
    let none = || Routes::new(app, "Agents");
    let agent = none()
        .post("/workers/register", Access::Newcomer, agent::REGISTER, agent::register)
        .get("/workers/stream", Access::Worker(TokenUse::Listen), stream::STREAM, stream::stream)
        .get("/workers/next", Access::Worker(TokenUse::Work), stream::NEXT, stream::next)
        .get("/workers/queue", Access::Worker(TokenUse::Check), agent::QUEUE, agent::queue)
        .post("/workers/disconnect", Access::Worker(TokenUse::Work), agent::DISCONNECT, agent::disconnect)
        .post("/workers/job/{id}/status", Access::Job, job::STATUS, job::status)
        .get("/workers/job/{id}/bundle", Access::Job, job::BUNDLE, job::bundle)
        .get("/workers/job/{id}/checkpoint", Access::Job, checkpoint::EARLIER, checkpoint::earlier)
        .get("/workers/job/{id}/checkpoint/{*path}", Access::Job, checkpoint::FILE, checkpoint::file)
        .post("/workers/job/{id}/secrets", Access::Job, job::SECRETS, job::secrets)
        .within(|router| limits::bounded(router, limits::API));
    let heartbeat = none()
        .post("/workers/heartbeat", Access::Worker(TokenUse::Work), agent::HEARTBEAT, agent::heartbeat)
        .within(|router| limits::bounded(router, limits::HEARTBEAT));
    let progress = none()
        .post("/workers/job/{id}/progress", Access::Job, job::PROGRESS, job::progress)
        .post("/workers/job/{id}/checkpoint", Access::Job, checkpoint::WHOLE, checkpoint::whole)
        .within(|router| limits::bounded(router, limits::PROGRESS));
    let logs = none()
        .put("/workers/job/{id}/logs", Access::Job, job::LOGS, job::logs)
        .within(|router| limits::bounded(router, limits::LOG_PIECE));
    // How large a file may be is counted while it arrives.
    let artifacts = none()
        .put("/workers/job/{id}/artifacts/{*path}", Access::Job, job::ARTIFACT, job::artifact)
        .get("/workers/job/{id}/artifacts/{*path}", Access::Job, job::UPLOADED, job::uploaded)
        .within(|router| router.layer(DefaultBodyLimit::disable()));
    agent.and(heartbeat).and(progress).and(logs).and(artifacts)
}
