//! `simpletuner-worker`: the agent on a GPU host.
//!
//! It registers with an orchestrator, takes offers, and runs each trainer under a supervisor: a small process of its own
//! (a hidden subcommand) that outlives the agent, with its state in a directory which any later agent adopts.

mod agent;
mod api;
mod artifacts;
mod attempt;
mod backoff;
mod bundle;
mod cli;
mod clock;
mod config;
mod doctor;
mod environment;
mod exit;
mod files;
mod gpu;
mod jobconfig;
mod limits;
mod outcome;
mod probe;
mod process;
mod progress;
mod retention;
mod room;
mod run_as;
mod sandbox;
mod secret;
mod service;
mod session;
mod spot;
mod state;
mod supervisor;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use app::command_line::ignoring_empty_variables;
use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    if let Err(fatal) = run_as::follow() {
        return service::say_last(&fatal);
    }
    // `simpletuner worker …` works where this program is all there is, under the name of the other.
    let args =
        std::env::args_os().enumerate().filter(|(place, arg)| *place != 1 || arg != "worker").map(|(_, arg)| arg);
    let matches = ignoring_empty_variables(cli::Cli::command()).get_matches_from(args);
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ended = match cli.command {
        Some(command) => command.run(&matches),
        None => service::start(cli.agent, &matches),
    };
    let code = ended.map_or_else(|fatal| service::say_last(&fatal), ExitCode::from);
    app::logging::queue::flush();
    code
}
