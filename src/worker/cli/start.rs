//! Starts the agent from the command line, and reports a fatal error.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use app::logging::{LogLineFormat, background_writer};
use clap::ArgMatches;

use crate::worker::args::{AgentArgs, is_on_command_line};
use crate::worker::config::AgentConfig;
use crate::worker::daemon::container_init;
use crate::worker::exit::{self, FatalError};
use crate::worker::secret::agent_secrets;
use crate::worker::{agent, startup, terminal};

static LOG_FORMAT: OnceLock<LogLineFormat> = OnceLock::new();

/// Runs the agent until it exits.
///
/// # Errors
/// Exit code and message.
pub fn run_agent(args: AgentArgs, matches: &ArgMatches) -> Result<u8, FatalError> {
    let format = LOG_FORMAT.get_or_init(|| startup::initialize(args.verbose, args.log_format));
    if *format == LogLineFormat::Json {
        // A panic must be in the log's format too, so that log collectors can parse it.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a task panicked")));
    }
    if args.worker_token.is_some() && is_on_command_line(matches, "worker_token") {
        return Err(startup::reexec_without_token());
    }
    if std::process::id() == 1 {
        return container_init::run_as_init(matches);
    }
    match agent::main(AgentConfig::from_args(args, matches)?)? {
        exit::RESTART => Err(reexec()),
        code => Ok(code),
    }
}

/// Restarts the same command in this process, for hardware that is only detected at the start. Returns only on failure.
fn reexec() -> FatalError {
    terminal::clear();
    background_writer::flush();
    let result = std::env::current_exe().map(|program| Command::new(program).args(std::env::args_os().skip(1)).exec());
    let error = result.unwrap_or_else(|error| error);
    FatalError::error(format!("cannot restart the agent: {error}. Start it again"))
}

/// Reports why the process exits, on all outputs.
pub fn report_fatal(fatal: &FatalError) -> ExitCode {
    terminal::clear();
    if LOG_FORMAT.get() == Some(&LogLineFormat::Json) {
        tracing::error!(exit_code = fatal.code, "{fatal}");
    } else {
        background_writer::flush();
        // Fails if the reader has closed the pipe, which is ignored.
        let _ = writeln!(io::stderr(), "simpletuner-worker: {}", agent_secrets::mask_text(&fatal.to_string()));
    }
    ExitCode::from(fatal.code)
}
