//! How the server is watched, and what it keeps free.

use std::net::SocketAddr;

use app::domain::time::Millis;
use app::domain::watermark::Floor;
use app::logging::Format;
use clap::Args;

use crate::service::retention::Kept;
use crate::shipping::target::Target;

/// Flags of `simpletuner server` about that.
#[derive(Debug, Clone, Args)]
pub struct OpsArgs {
    /// Log as text for people, or as a JSON object a line.
    #[arg(long, env = "SIMPLETUNER_LOG_FORMAT", value_name = "text|json", default_value = "text", value_parser = Format::parse)]
    pub log_format: Format,
    /// Answer /metrics, /healthz and /readyz on this address too, to whoever reaches it.
    #[arg(long, env = "SIMPLETUNER_METRICS_ADDR", value_name = "ADDR:PORT")]
    pub metrics_addr: Option<SocketAddr>,
    /// Send signed checkpoints of the audit trail elsewhere as they are made: to a file on another host's mount, to a syslog,
    /// or to a webhook [default: do not].
    #[arg(
        long,
        env = "SIMPLETUNER_AUDIT_SHIP",
        value_name = "file:/PATH|syslog:[HOST[:PORT]]|https://…",
        hide_env_values = true
    )]
    pub audit_ship: Option<Target>,
    /// Give up a try to send checkpoints after so many seconds; the next one follows within a minute.
    #[arg(long, env = "SIMPLETUNER_AUDIT_SHIP_TIMEOUT", value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub audit_ship_timeout: u16,
    /// Remove ended jobs, with all that belongs to them, so many days after their end [default: keep them].
    #[arg(long, env = "SIMPLETUNER_JOB_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub job_retention_days: Option<u32>,
    /// Remove the logs of ended jobs after so many days [default: keep them].
    #[arg(long, env = "SIMPLETUNER_LOG_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub log_retention_days: Option<u32>,
    /// Remove the files that ended jobs made after so many days [default: keep them].
    #[arg(long, env = "SIMPLETUNER_ARTIFACT_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub artifact_retention_days: Option<u32>,
    /// Keep so many bytes of files that jobs made, like 500GiB; those of jobs that ended first go first [default: all].
    #[arg(long, env = "SIMPLETUNER_ARTIFACT_MAX_TOTAL", value_name = "SIZE", value_parser = size)]
    pub artifact_max_total: Option<u64>,
    /// Take no more of an attempt's log than this, with what its worker had to drop.
    #[arg(long, env = "SIMPLETUNER_LOG_MAX_SIZE", value_name = "SIZE", default_value = "64GiB", value_parser = size)]
    pub log_max_size: u64,
    /// Take no new jobs when less than this is free on the data directory's disk: a size, or a part like 5%; 0 never.
    #[arg(long, env = "SIMPLETUNER_DISK_MIN_FREE", value_name = "SIZE", default_value = "2GiB", value_parser = Floor::parse)]
    pub disk_min_free: Floor,
    /// Store configurations that bring code (.py, .so, .pkl …); workers run it only if they are started with --allow-code too.
    #[arg(long, env = "SIMPLETUNER_ALLOW_CODE", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_code: bool,
    /// Refuse logs, points and files of running jobs when less than this is free: a size, or a part like 1%; 0 never.
    #[arg(long, env = "SIMPLETUNER_DISK_MIN_FREE_RUNNING", value_name = "SIZE", default_value = "512MiB", value_parser = Floor::parse)]
    pub disk_min_free_running: Floor,
}

impl OpsArgs {
    /// How long jobs and their files are kept.
    pub fn kept(&self) -> Kept {
        let days = |days: Option<u32>| days.map(|days| Millis::seconds(i64::from(days) * 86_400));
        Kept {
            jobs: days(self.job_retention_days),
            logs: days(self.log_retention_days),
            artifacts: days(self.artifact_retention_days),
            artifact_bytes: self.artifact_max_total,
        }
    }
}

/// A size in bytes, like `500GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    match Floor::parse(text)? {
        Floor::Bytes(bytes) => Ok(bytes),
        Floor::Percent(_) => Err("write a size like 500GiB".to_owned()),
    }
}
