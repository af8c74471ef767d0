//! The agent's, of `src/worker/config`.

#[path = "../../src/worker/config/paths.rs"]
pub mod paths;
