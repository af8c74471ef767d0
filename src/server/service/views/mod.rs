//! Domain and rows to what clients see.

mod attempts;
mod explain;
mod files;
pub mod gpus;
pub mod jobs;
mod metrics;
mod overview;
pub mod roster;
mod summary;
mod worker_history;
pub mod workers;
