//! What the process does before anything else: it starts the log, protects its memory, and hides the token from the
//! process list.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;

use app::logging::{LogLineFormat, background_writer};

use crate::worker::args::WORKER_TOKEN_ENV;
use crate::worker::args::ops::LogFormat;
use crate::worker::exit::FatalError;
use crate::worker::{logging, terminal};

/// Initializes the process before anything else. Returns the log format.
pub fn initialize(verbose: bool, format: LogFormat) -> LogLineFormat {
    let on_terminal = std::io::stderr().is_terminal();
    if format == LogFormat::Auto && on_terminal {
        terminal::enable();
    }
    let format = format.resolve(on_terminal);
    background_writer::start(terminal::terminal_writer());
    logging::init_logging(verbose, format);
    disable_process_dump();
    format
}

/// Prevents other processes of this user, such as trainers, from reading this process's memory and environment, which
/// contain the worker's token. Also disables core dumps.
fn disable_process_dump() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read the token from the agent's memory");
    }
}

/// Restarts the same command with the token in its environment, which only this user can read. Returns only on failure.
pub fn reexec_without_token() -> FatalError {
    tracing::warn!(
        "--worker-token on the command line is visible to other users of this machine; moving it to the environment. \
         {WORKER_TOKEN_ENV} or --worker-token-file avoid this"
    );
    let (token, rest) = split_token_arg(std::env::args_os().skip(1));
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return FatalError::error(format!("cannot find the path of this program: {error}")),
    };
    let mut command = std::process::Command::new(program);
    background_writer::flush();
    let error = command.args(rest).env(WORKER_TOKEN_ENV, token.unwrap_or_default()).exec();
    FatalError::error(format!("cannot restart without the token on the command line: {error}"))
}

/// The arguments without `--worker-token`, and its (last) value.
fn split_token_arg(args: impl Iterator<Item = OsString>) -> (Option<OsString>, Vec<OsString>) {
    let mut token = None;
    let mut rest = Vec::new();
    let mut args = args;
    while let Some(arg) = args.next() {
        if arg == "--worker-token" {
            token = args.next();
        } else if let Some(value) = arg.to_str().and_then(|text| text.strip_prefix("--worker-token=")) {
            token = Some(value.into());
        } else {
            rest.push(arg);
        }
    }
    (token, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_removed_from_the_arguments() {
        let split = |list: &[&str]| split_token_arg(list.iter().map(OsString::from).collect::<Vec<_>>().into_iter());
        let os_strings = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let cases: [(&[&str], Option<&str>, &[&str]); 4] = [
            (&["--worker-token", "wt_a", "--persistent"], Some("wt_a"), &["--persistent"]),
            (&["--name", "x", "--worker-token=wt_b"], Some("wt_b"), &["--name", "x"]),
            (&["--worker-token-file", "f"], None, &["--worker-token-file", "f"]),
            (&["-v"], None, &["-v"]),
        ];
        for (arguments, token, rest) in cases {
            assert_eq!(split(arguments), (token.map(OsString::from), os_strings(rest)));
        }
    }
}
