//! The types that cross a process boundary: agent ↔ orchestrator, browser ↔ orchestrator.
//!
//! They are the API contract, separate from the domain's state: fields are only added, never renamed or removed.
//! Unknown fields are ignored, and times are RFC 3339 text in UTC.

pub mod access;
pub mod artifacts;
pub mod audit;
pub mod bulk;
pub mod checkpoints;
pub mod configs;
pub mod dispatch;
pub mod explain;
pub mod factors;
pub mod fingerprint;
pub mod gpu;
pub mod gpus;
pub mod history;
pub mod logs;
pub mod notices;
pub mod overrides;
pub mod overview;
pub mod percent_encoding;
pub mod problem;
pub mod queue;
pub mod refused_agents;
#[cfg(feature = "schema")]
mod schema;
pub mod search;
pub mod secrets;
pub mod status;
pub mod submit;
pub mod system;
mod time;
pub mod token_lifetime;
pub mod topic;
pub mod usage;
pub mod worker;
pub mod worker_deletion;
pub mod worker_history;
pub mod workers;
