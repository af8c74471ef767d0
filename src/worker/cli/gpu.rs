//! `simpletuner-worker gpus …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::default_work_dir;
use crate::exit::Fatal;
use crate::gpu::command;

/// What a person may want of the GPUs.
#[derive(Debug, Args)]
pub struct GpusArgs {
    /// The worker's work directory [default: the user's state directory]
    #[arg(long, value_name = "DIR", env = "SIMPLETUNER_WORK_DIR", global = true)]
    work_dir: Option<PathBuf>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Lets a GPU out of quarantine, so that jobs may have it again
    Release {
        /// Its id, as `gpus` lists it
        uuid: String,
    },
}

/// Does it.
///
/// # Errors
/// With the sentence for who asked.
pub fn run(args: GpusArgs) -> Result<u8, Fatal> {
    let work_dir = args.work_dir.map_or_else(|| default_work_dir(|name| std::env::var(name).ok()), Ok)?;
    match args.what {
        None => command::list(&work_dir),
        Some(What::Release { uuid }) => command::release(&work_dir, &uuid),
    }
}
