//! Agents: registration, streams, heartbeats, and the older protocol.

mod host_health;
mod liveness;
pub mod older;
mod older_jobs;
mod requests;
mod sessions;
