//! Domain and rows to what clients see.

mod explain;
mod files;
pub mod jobs;
pub mod workers;
