//! `simpletuner-worker`: the agent on a GPU host.
//!
//! It registers with an orchestrator, accepts offers, and runs each trainer under a supervisor: a small process that
//! outlives the agent and keeps its state in a directory, from which a later agent adopts it.

mod agent;
mod api;
mod args;
mod artifacts;
mod attempt;
mod backoff;
mod bundle;
mod cgroup;
mod cli;
mod clock;
mod config;
mod context;
mod daemon;
mod disk_space;
mod doctor;
mod environment;
mod exit;
mod files;
mod filesystem;
mod gpu;
mod host_health;
mod job_config;
mod limits;
mod logging;
mod outcome;
mod probe;
mod process;
mod process_exit;
mod progress;
mod retention;
mod run_as;
mod sandbox;
mod secret;
mod session;
mod spot;
mod startup;
mod state;
mod supervisor;
mod supervisor_pool;
mod terminal;
#[cfg(test)]
mod tests;
mod trainer_program;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
