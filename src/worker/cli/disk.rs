//! What the operator wants of the work directory's disk.

use app::domain::watermark::Floor;
use clap::Args;

/// See the module.
#[derive(Debug, Clone, Copy, Args)]
pub struct DiskArgs {
    /// Keep so much of the work directory's disk free, a size or a part of it (`20GiB`, `5%`, `0`): files of finished jobs go,
    /// the oldest first, and if that is not enough no new job comes [default: 10GiB, or 5% of a disk below 200GiB]
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_KEEP_FREE", value_parser = Floor::parse)]
    pub keep_free: Option<Floor>,
}
