//! `/api/workers/*`: what agents use. One firewall rule covers it all.

mod agent;
mod job;
mod stream;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};

pub use self::agent::actor;
use super::{access, limits};
use crate::state::App;

/// The routes, with their guards.
pub fn routes(app: &App) -> Router<App> {
    let newcomer = Router::new()
        .route("/workers/register", post(agent::register))
        .route_layer(from_fn_with_state(app.clone(), access::newcomer));
    let agent = Router::new()
        .route("/workers/stream", get(stream::stream))
        .route("/workers/next", get(stream::next))
        .route("/workers/heartbeat", post(agent::heartbeat))
        .route("/workers/queue", get(agent::queue))
        .route("/workers/disconnect", post(agent::disconnect))
        .route_layer(from_fn_with_state(app.clone(), access::worker));
    let job = Router::new()
        .route("/workers/job/{id}/status", post(job::status))
        .route("/workers/job/{id}/progress", post(job::progress).layer(DefaultBodyLimit::max(limits::PROGRESS)))
        .route("/workers/job/{id}/logs", put(job::logs).layer(DefaultBodyLimit::max(limits::LOG_PIECE)))
        .route("/workers/job/{id}/artifacts/{*path}", put(job::artifact).layer(DefaultBodyLimit::disable()))
        .route("/workers/job/{id}/bundle", get(job::bundle))
        .route("/workers/job/{id}/secrets", post(job::secrets))
        .route_layer(from_fn_with_state(app.clone(), access::job));
    newcomer.merge(agent).merge(job).layer(DefaultBodyLimit::max(limits::API))
}
