//! Domain and rows to what clients see.

mod files;
mod jobs;
mod workers;
