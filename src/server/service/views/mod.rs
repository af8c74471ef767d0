//! Domain and rows to what clients see.

mod explain;
mod files;
mod jobs;
mod workers;
