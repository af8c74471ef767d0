//! The agent on a GPU host.
//!
//! It registers with an orchestrator, accepts offers, and runs each trainer under a supervisor: a small process that
//! outlives the agent and keeps its state in a directory, from which a later agent adopts it.

pub mod agent;
pub mod api;
mod args;
mod artifacts;
mod attempt;
mod backoff;
mod bundle;
mod cgroup;
pub mod cli;
pub mod clock;
pub mod config;
pub mod context;
mod daemon;
mod disk_space;
mod doctor;
mod environment;
mod exit;
pub mod files;
mod filesystem;
pub mod gpu;
mod host_health;
mod job_config;
mod limits;
mod logging;
pub mod outcome;
mod probe;
mod process;
mod process_exit;
mod progress;
mod retention;
mod run_as;
mod sandbox;
pub mod secret;
pub mod session;
mod spot;
mod startup;
pub mod state;
pub mod supervisor;
mod supervisor_pool;
mod terminal;
#[cfg(test)]
mod tests;
mod trainer_program;
