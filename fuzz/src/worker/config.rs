//! Modules of the agent from `src/worker/config`.

#[path = "../../../src/worker/config/paths.rs"]
pub mod paths;
