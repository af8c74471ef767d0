//! `simpletuner worker`: replaces this process with the agent beside this program or on the `PATH`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const AGENT_BINARY: &str = "simpletuner-worker";

/// Returns the agent beside this program, or the one on the `PATH`.
pub fn agent_program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(AGENT_BINARY)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(AGENT_BINARY))
}

/// Executes the agent. Only returns if that fails.
pub fn become_agent(args: &[OsString]) -> ExitCode {
    let program = agent_program();
    let error = Command::new(&program).args(args).exec();
    let _ = writeln!(
        io::stderr(),
        "error: cannot start the agent `{AGENT_BINARY}` ({error}). Install it beside `simpletuner`, or on the PATH."
    );
    ExitCode::from(69)
}
