//! Modules of the agent from `src/worker/args`.

#[path = "../../../src/worker/args/input_limits.rs"]
pub mod input_limits;
