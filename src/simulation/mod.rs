//! Runs scenarios and checks what must hold in them.
//!
//! A server and agents run their own code on one thread, each on a runtime whose clock stands still while anything runs:
//! an hour passes in a second, and the same seed leads to the same order of everything. What they run on is simulated:
//! time, randomness, the network, the disk's speed, and trainers with their supervisors.

mod attempt;
mod checks;
mod host;
mod network;
mod property;
mod run;
mod scenario;
mod seeds;
mod server_process;
mod trace;
mod user;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Simulates a server and its agents, with faults.
#[derive(Debug, Parser)]
struct SimulationArgs {
    /// Run this seed only, in this process
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happens in it
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Where it keeps its files
    #[arg(long, default_value = "/dev/shm")]
    directory: PathBuf,
    /// Seeds to run
    #[arg(long, default_value_t = 1_000)]
    count: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run for at most this many seconds, and fewer seeds
    #[arg(long)]
    seconds: Option<u64>,
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let args = SimulationArgs::parse();
    match args.seed {
        Some(seed) => run::run_seed(seed, args.trace, &args.directory),
        None => seeds::run_seeds(args.first, args.count, args.seconds, &args.directory),
    }
}
