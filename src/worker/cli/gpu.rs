//! `simpletuner-worker gpus …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::worker::config::default_work_dir;
use crate::worker::exit::FatalError;
use crate::worker::gpu::command;

#[derive(Debug, Args)]
pub struct GpusArgs {
    /// The worker's work directory [default: the user's state directory]
    #[arg(long, value_name = "DIR", env = "SIMPLETUNER_WORK_DIR", global = true)]
    work_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<GpusCommand>,
}

#[derive(Debug, Subcommand)]
enum GpusCommand {
    /// Release a GPU from quarantine, so that jobs can use it again
    Release {
        /// GPU ID, as listed by `gpus`
        uuid: String,
    },
}

/// Runs the command.
///
/// # Errors
/// A message for the user.
pub fn run(args: GpusArgs) -> Result<u8, FatalError> {
    let work_dir = args.work_dir.map_or_else(|| default_work_dir(|name| std::env::var(name).ok()), Ok)?;
    match args.command {
        None => command::list(&work_dir),
        Some(GpusCommand::Release { uuid }) => command::release(&work_dir, &uuid),
    }
}
