//! The orchestrator, `simpletuner server`, and the way to the agent, `simpletuner worker`.
//!
//! `boot` puts it together; `http` is the edge; `service` holds the use cases, which ask the rules in `app::domain`
//! and write through `store`; `hub` is the doorbell; `loops` are the reconcilers.

// Pages are deeply nested types.
#![recursion_limit = "512"]

mod backup;
mod boot;
mod cli;
mod clock;
mod disk;
mod files;
mod flashes;
mod history;
mod http;
mod hub;
mod lifecycle;
mod loops;
mod metrics;
mod process;
mod random;
mod service;
mod shipping;
mod state;
mod store;
mod text;
mod tls;
mod tokens;
mod vault;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use nix::sys::stat::{Mode, umask};

/// The system's gives each thread an arena of its own and keeps what was freed in it: with thousands of streams, a
/// third of what the server takes. The settings of this one stand in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // The database, logs and models are nobody else's on this machine, whatever its other users may read.
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    cli::run()
}
