//! The settings of `simpletuner server`: its flags and variables.

mod accounts;
mod edge;
pub mod exposed_secrets;
pub mod limits;
pub mod local;
mod ops;
mod secret_string;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

use self::accounts::AccountArgs;
use self::edge::EdgeArgs;
use self::limits::LimitArgs;
use self::local::LocalArgs;
use self::ops::OpsArgs;
pub use self::secret_string::SecretString;

/// `simpletuner server`
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Address to listen on; 0.0.0.0 for all networks.
    #[arg(long, env = "SIMPLETUNER_HOST", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on.
    #[arg(long, env = "SIMPLETUNER_PORT", default_value_t = 8001)]
    pub port: u16,
    #[command(flatten)]
    pub edge: EdgeArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub accounts: AccountArgs,
    #[command(flatten)]
    pub ops: OpsArgs,
    /// Directory of the database, logs and artifacts [default: simpletuner in the user's data directory].
    #[arg(long, env = "SIMPLETUNER_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Encryption key for job secrets, created on first use; must be shared by all servers [default: beside the data
    /// directory, with `.key` after its name].
    #[arg(long, env = "SIMPLETUNER_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,
    /// PostgreSQL database, which several servers can share [default: SQLite in the data directory].
    #[arg(long, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<SecretString>,
    /// Import every subdirectory of this one that contains a `config.json`, at startup.
    #[arg(long, env = "SIMPLETUNER_CONFIGS_DIR")]
    pub configs_dir: Option<PathBuf>,
    #[command(flatten)]
    pub local: LocalArgs,
    /// Single-user mode: no sign-in, loopback only, everyone is admin.
    #[arg(long, env = "SIMPLETUNER_SINGLE_USER", value_parser = BoolishValueParser::new())]
    pub single_user: bool,
    /// Mark a worker offline after this many seconds without a heartbeat.
    #[arg(long, env = "SIMPLETUNER_HEARTBEAT_TIMEOUT", default_value_t = 120, value_parser = clap::value_parser!(u32).range(4..=86_400))]
    pub heartbeat_timeout: u32,
    /// Limit running jobs in total [default: unlimited].
    #[arg(long, env = "SIMPLETUNER_MAX_RUNNING_JOBS", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_jobs: Option<u32>,
    /// Limit running jobs per user.
    #[arg(long, env = "SIMPLETUNER_MAX_RUNNING_JOBS_PER_USER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_jobs_per_user: Option<u32>,
    /// Match jobs by labels that admins have set, never by labels that agents report.
    #[arg(long, env = "SIMPLETUNER_IGNORE_REPORTED_LABELS", value_parser = BoolishValueParser::new())]
    pub ignore_reported_labels: bool,
    /// Create this admin API token at startup, or keep it (for automation).
    #[arg(long, env = "SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", hide = true, hide_env_values = true)]
    pub bootstrap_admin_token: Option<SecretString>,
    /// File with an admin API token to create at startup (for automation).
    #[arg(long, env = "SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN_FILE")]
    pub bootstrap_admin_token_file: Option<PathBuf>,
    /// Delete entries of the audit log after this many days [default: never].
    #[arg(long, env = "SIMPLETUNER_AUDIT_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub audit_retention_days: Option<u32>,
    /// Log debug messages.
    #[arg(short, long)]
    pub verbose: bool,
}
