//! The orchestrator, `simpletuner server`, and the entry to the agent, `simpletuner worker`.
//!
//! `boot` sets everything up; `http` is the edge; `service` holds the use cases, which use the rules in `app::domain`
//! and write through `store`; `change_notifier` sends change notifications; `loops` are background loops.

// Pages are deeply nested types.
#![recursion_limit = "512"]

mod args;
mod audit_shipping;
mod backup;
mod boot;
mod change_notifier;
mod cli;
mod clock;
mod data_dir;
mod disk;
mod exit;
mod files;
mod flashes;
mod history;
mod http;
mod lifecycle;
mod loops;
mod metrics;
mod process;
mod random;
mod service;
mod store;
mod text;
mod tls;
mod tokens;
mod vault;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use nix::sys::stat::{Mode, umask};

/// The system's allocator gives each thread an arena and keeps freed memory in it: with thousands of streams, a third
/// of the server's memory. The settings of this one are in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Database, logs and models must not be readable by other users of this machine.
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    cli::run()
}
