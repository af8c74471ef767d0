//! The agent's, of `src/worker/cli`.

#[path = "../../src/worker/cli/bounds.rs"]
pub mod bounds;
