//! `simpletuner-worker`: the agent on a GPU host.

mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    worker::cli::run()
}
