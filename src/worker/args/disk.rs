//! Flags for the disk of the work directory.

use app::domain::disk_watermark::DiskFloor;
use clap::Args;

/// A hundred years.
const MAX_RETENTION_DAYS: u64 = 36_500;

#[derive(Debug, Clone, Copy, Args)]
pub struct DiskArgs {
    /// Free space to keep on the work directory's disk, a size or a percentage (`20GiB`, `5%`, `0`): files of finished
    /// jobs are pruned, oldest first, then new jobs are declined [default: 10GiB, or 5% of a disk below 200GiB]
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_KEEP_FREE", value_parser = DiskFloor::parse)]
    pub keep_free: Option<DiskFloor>,
    /// Days after which a user's home directory with its caches is removed if none of their jobs has run here; sooner
    /// if disk space is low
    #[arg(long, value_name = "DAYS", env = "SIMPLETUNER_HOME_RETENTION_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=MAX_RETENTION_DAYS))]
    pub home_retention_days: u64,
}
