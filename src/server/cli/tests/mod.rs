//! The operator's commands, run against a server on a real socket.

mod auth;
mod commands;
mod compare;
mod configs;
mod download;
mod exit_codes;
mod files;
mod follow_logs;
pub mod harness;
mod jobs;
mod narrow_terminal;
mod offline;
mod open;
mod tls;
mod workers;

use std::sync::Arc;

use self::harness::ScriptedPrompter;
use super::output::{Output, OutputFormat};
use crate::clock::SystemClock;
use crate::exit::ExitError;

/// An output for commands without a server.
fn with_offline_output(
    out: &mut Vec<u8>,
    work: impl FnOnce(&mut Output<'_>) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    work(&mut Output {
        out,
        err: &mut Vec::new(),
        prompter: &mut ScriptedPrompter::default(),
        format: OutputFormat::Text,
        use_color: false,
        width: None,
        shows_progress: false,
        assume_yes: false,
        browser: None,
        clock: Arc::new(SystemClock),
    })
}
