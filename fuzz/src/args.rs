//! The agent's, of `src/worker/args`.

#[path = "../../src/worker/args/input_limits.rs"]
pub mod input_limits;
