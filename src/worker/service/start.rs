//! From the command line to the agent, and its last word.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use app::logging::{Format, queue};
use clap::ArgMatches;

use super::{init, terminal};
use crate::agent;
use crate::cli::{self, AgentArgs};
use crate::config::Config;
use crate::exit::{self, Fatal};
use crate::secret::own;

static FORMAT: OnceLock<Format> = OnceLock::new();

/// Runs the agent to its end.
///
/// # Errors
/// With the exit code and sentence.
pub fn start(args: AgentArgs, matches: &ArgMatches) -> Result<u8, Fatal> {
    let format = FORMAT.get_or_init(|| cli::begin(args.verbose, args.log_format));
    if *format == Format::Json {
        // What goes wrong must not be the one thing that a collector cannot read.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
    }
    if args.worker_token.is_some() && cli::is_on_command_line(matches, "worker_token") {
        return Err(cli::leave_process_list());
    }
    if std::process::id() == 1 {
        return init::run(matches);
    }
    match agent::main(Config::new(args, matches)?)? {
        exit::AGAIN => Err(begin_again()),
        code => Ok(code),
    }
}

/// Starts the same command again in this process, for what can only be looked at when it begins. Returns only if that fails.
fn begin_again() -> Fatal {
    terminal::clear();
    queue::flush();
    let begun = std::env::current_exe().map(|program| Command::new(program).args(std::env::args_os().skip(1)).exec());
    let error = begun.unwrap_or_else(|error| error);
    Fatal::error(format!("the agent cannot begin again: {error}. Start it again"))
}

/// Says why the process ends, where it says everything.
pub fn say_last(fatal: &Fatal) -> ExitCode {
    terminal::clear();
    if FORMAT.get() == Some(&Format::Json) {
        tracing::error!(exit_code = fatal.code, "{fatal}");
    } else {
        queue::flush();
        // A reader that is gone wants no last word.
        let _ = writeln!(io::stderr(), "simpletuner-worker: {}", own::text_without(&fatal.to_string()));
    }
    ExitCode::from(fatal.code)
}
