//! Domain and rows to what clients see.

mod attempts;
mod explain;
mod files;
pub mod jobs;
mod metrics;
mod overview;
pub mod roster;
pub mod workers;
