//! `simpletuner worker`: finds the agent beside this program, or on the `PATH`, and becomes it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const AGENT: &str = "simpletuner-worker";

/// The agent beside this program, or the one on the `PATH`.
pub fn agent_program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(AGENT)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(AGENT))
}

/// Only returns if there is no agent.
pub fn become_agent(args: &[OsString]) -> ExitCode {
    let program = agent_program();
    let error = Command::new(&program).args(args).exec();
    let _ = writeln!(
        io::stderr(),
        "error: the agent `{AGENT}` could not be started ({error}). Put it beside `simpletuner`, or on the PATH."
    );
    ExitCode::from(69)
}
