//! Monitoring, retention and free disk space.

use std::net::SocketAddr;

use app::domain::disk_watermark::DiskFloor;
use app::domain::time::Millis;
use app::logging::LogLineFormat;
use clap::Args;

use crate::audit_shipping::destination::AuditDestination;
use crate::service::policy::job_retention::JobRetention;

#[derive(Debug, Clone, Args)]
pub struct OpsArgs {
    /// Log as text, or as one JSON object per line.
    #[arg(long, env = "SIMPLETUNER_LOG_FORMAT", value_name = "text|json", default_value = "text", value_parser = LogLineFormat::parse)]
    pub log_format: LogLineFormat,
    /// Also serve /metrics, /healthz and /readyz on this address, unauthenticated.
    #[arg(long, env = "SIMPLETUNER_METRICS_ADDR", value_name = "ADDR:PORT")]
    pub metrics_addr: Option<SocketAddr>,
    /// Ship signed checkpoints of the audit log to a file on another host's mount, a syslog server or a webhook
    /// [default: none].
    #[arg(
        long,
        env = "SIMPLETUNER_AUDIT_SHIP",
        value_name = "file:/PATH|syslog:[HOST[:PORT]]|https://…",
        hide_env_values = true
    )]
    pub audit_ship: Option<AuditDestination>,
    /// Time out a try to ship checkpoints after this many seconds; the next one follows within a minute.
    #[arg(long, env = "SIMPLETUNER_AUDIT_SHIP_TIMEOUT", value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=300))]
    pub audit_ship_timeout: u16,
    /// Delete jobs, with logs and artifacts, this many days after they end [default: never].
    #[arg(long, env = "SIMPLETUNER_JOB_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub job_retention_days: Option<u32>,
    /// Delete logs this many days after their job ends [default: never].
    #[arg(long, env = "SIMPLETUNER_LOG_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub log_retention_days: Option<u32>,
    /// Delete artifacts this many days after their job ends [default: never].
    #[arg(long, env = "SIMPLETUNER_ARTIFACT_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub artifact_retention_days: Option<u32>,
    /// Limit the total size of artifacts, like 500GiB; those of the oldest ended jobs are deleted first [default:
    /// unlimited].
    #[arg(long, env = "SIMPLETUNER_ARTIFACT_MAX_TOTAL", value_name = "SIZE", value_parser = parse_size)]
    pub artifact_max_total: Option<u64>,
    /// Limit the log size per attempt, including gaps.
    #[arg(long, env = "SIMPLETUNER_LOG_MAX_SIZE", value_name = "SIZE", default_value = "64GiB", value_parser = parse_size)]
    pub log_max_size: u64,
    /// Reject new jobs below this free space on the data directory's disk: a size, or a percentage like 5%; 0 for
    /// never.
    #[arg(long, env = "SIMPLETUNER_DISK_MIN_FREE", value_name = "SIZE", default_value = "2GiB", value_parser = DiskFloor::parse)]
    pub disk_min_free: DiskFloor,
    /// Accept configurations with code (.py, .so, .pkl …); workers run it only if started with --allow-code too.
    #[arg(long, env = "SIMPLETUNER_ALLOW_CODE", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_code: bool,
    /// Reject logs, metric points and files of running jobs below this free space: a size, or a percentage like 1%; 0
    /// for never.
    #[arg(long, env = "SIMPLETUNER_DISK_MIN_FREE_RUNNING", value_name = "SIZE", default_value = "512MiB", value_parser = DiskFloor::parse)]
    pub disk_min_free_running: DiskFloor,
}

impl OpsArgs {
    /// Returns how long jobs and their files are kept.
    pub fn retention(&self) -> JobRetention {
        let days = |days: Option<u32>| days.map(|days| Millis::from_secs(i64::from(days) * 86_400));
        JobRetention {
            jobs: days(self.job_retention_days),
            logs: days(self.log_retention_days),
            artifacts: days(self.artifact_retention_days),
            artifact_bytes: self.artifact_max_total,
        }
    }
}

/// Parses a size in bytes, like `500GiB`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    match DiskFloor::parse(text)? {
        DiskFloor::Bytes(bytes) => Ok(bytes),
        DiskFloor::Percent(_) => Err("write a size like 500GiB".to_owned()),
    }
}
