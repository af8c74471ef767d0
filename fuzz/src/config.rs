//! The agent's, of `src/worker/config`.

#[path = "../../src/worker/config/paths.rs"]
pub mod paths;
#[path = "../../src/worker/config/span.rs"]
pub mod span;
