//! The types that cross a process boundary: agent ↔ orchestrator, browser ↔ orchestrator.
//!
//! They are the API contract, separate from the domain's state: fields are only added, never renamed or removed.
//! Unknown fields are ignored, and times are RFC 3339 text in UTC.

pub mod access;
pub mod agents;
pub mod artifacts;
pub mod audit;
pub mod bulk;
pub mod configs;
pub mod gpu;
pub mod gpus;
pub mod jobs;
pub mod logs;
pub mod overview;
pub mod percent_encoding;
pub mod problem;
#[cfg(feature = "schema")]
mod schema;
pub mod search;
pub mod secrets;
pub mod shares;
#[cfg(any(test, feature = "native"))]
pub mod shown_fields;
pub mod status;
pub mod system;
mod time;
pub mod topic;
pub mod usage;
pub mod workers;
