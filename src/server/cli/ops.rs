//! How the server is watched, and what it keeps free.

use std::net::SocketAddr;

use app::domain::watermark::Floor;
use app::logging::Format;
use clap::Args;

/// Flags of `simpletuner server` about that.
#[derive(Debug, Clone, Args)]
pub struct OpsArgs {
    /// Log as text for people, or as a JSON object a line.
    #[arg(long, env = "SIMPLETUNER_LOG_FORMAT", value_name = "text|json", default_value = "text", value_parser = Format::parse)]
    pub log_format: Format,
    /// Answer /metrics, /healthz and /readyz on this address too, to whoever reaches it.
    #[arg(long, env = "SIMPLETUNER_METRICS_LISTEN", value_name = "ADDR:PORT")]
    pub metrics_listen: Option<SocketAddr>,
    /// Take no new jobs when less than this is free on the data directory's disk: a size, or a part like 5%; 0 never.
    #[arg(long, env = "SIMPLETUNER_DISK_MIN_FREE", value_name = "SIZE", default_value = "2GiB", value_parser = Floor::parse)]
    pub disk_min_free: Floor,
}
