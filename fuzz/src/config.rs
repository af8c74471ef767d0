//! The agent's, of `src/worker/config`.

#[path = "../../src/worker/config/duration.rs"]
pub mod duration;
#[path = "../../src/worker/config/paths.rs"]
pub mod paths;
