//! `simpletuner-worker`: the agent on a GPU host.
//!
//! It registers with an orchestrator, accepts offers, and runs each trainer under a supervisor: a small process that outlives
//! the agent and keeps its state in a directory, from which a later agent adopts it.

mod agent;
mod api;
mod artifacts;
mod attempt;
mod backoff;
mod bundle;
mod cli;
mod clock;
mod config;
mod daemon;
mod disk_space;
mod doctor;
mod environment;
mod exit;
mod files;
mod gpu;
mod job_config;
mod limits;
mod outcome;
mod probe;
mod process;
mod progress;
mod retention;
mod run_as;
mod sandbox;
mod secret;
mod session;
mod spot;
mod state;
mod supervisor;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use app::command_line::ignore_empty_env_vars;
use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    if let Err(fatal) = run_as::become_user() {
        return daemon::report_fatal(&fatal);
    }
    // `simpletuner worker …` also works if this program is installed under that name.
    let args =
        std::env::args_os().enumerate().filter(|(place, arg)| *place != 1 || arg != "worker").map(|(_, arg)| arg);
    let matches = ignore_empty_env_vars(cli::Cli::command()).get_matches_from(args);
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let ended = match cli.command {
        Some(command) => command.run(&matches),
        None => daemon::run_agent(cli.agent, &matches),
    };
    let code = ended.map_or_else(|fatal| daemon::report_fatal(&fatal), ExitCode::from);
    app::logging::background_writer::flush();
    code
}
