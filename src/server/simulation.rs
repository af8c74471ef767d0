//! The simulation: a server and agents on one thread, with simulated time, network and trainers (`make prove`).
//!
//! It is a root of the server's crate beside `main.rs`, so that it reaches the server's parts as they reach each other.

// Pages are deeply nested types.
#![recursion_limit = "512"]
#![expect(dead_code, reason = "complete programs are included, and a simulation uses only parts of them")]

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

#[path = "../simulation/mod.rs"]
mod simulation;
#[path = "../worker/mod.rs"]
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    simulation::main()
}

/// Replaces the C library's function, from which hash tables and `tokio::select!` get their seeds: with the same bytes for
/// all, they are the same in every run.
///
/// # Safety
/// The buffer must have this length.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "the signature of the C library's function")]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    // SAFETY: the caller's buffer has this length.
    unsafe { std::ptr::write_bytes(buffer, 42, length) };
    length.try_into().unwrap_or(isize::MAX)
}
