//! The agent's, of `src/worker/cli`.

#[path = "../../src/worker/cli/input_limits.rs"]
pub mod input_limits;
