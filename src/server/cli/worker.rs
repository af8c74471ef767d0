//! `simpletuner worker`: replaces this process with the agent beside this program or on the `PATH`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::boot::local_agent::{AGENT_BINARY, agent_program};

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
