//! What the operator wants of the work directory's disk.

use app::domain::watermark::Floor;
use clap::Args;

/// A hundred years are for ever.
const MOST_DAYS: u64 = 36_500;

/// See the module.
#[derive(Debug, Clone, Copy, Args)]
pub struct DiskArgs {
    /// Keep so much of the work directory's disk free, a size or a part of it (`20GiB`, `5%`, `0`): files of finished jobs go,
    /// the oldest first, and if that is not enough no new job comes [default: 10GiB, or 5% of a disk below 200GiB]
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_KEEP_FREE", value_parser = Floor::parse)]
    pub keep_free: Option<Floor>,
    /// Remove the home of somebody's jobs, which holds caches, when none of them has run here for so many days; sooner if the
    /// disk is short
    #[arg(long, value_name = "DAYS", env = "SIMPLETUNER_HOME_RETENTION_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=MOST_DAYS))]
    pub home_retention_days: u64,
}
