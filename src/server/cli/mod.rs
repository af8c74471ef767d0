//! The command line: `simpletuner server …`, `simpletuner worker …` and the operator's commands.

mod accounts;
pub mod audit;
pub mod auth;
mod backup;
pub mod client;
mod config;
mod configs;
mod edge;
pub mod exposed_secrets;
mod generate;
mod gpus;
mod jobs;
pub mod limits;
pub mod local;
mod ops;
pub mod output;
mod run;
mod table;
#[cfg(test)]
mod tests;
pub mod worker;
mod workers;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use app::command_line::ignore_empty_env_vars;
use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::accounts::AccountArgs;
use self::client::connection::ConnectionArgs;
use self::edge::EdgeArgs;
use self::limits::LimitArgs;
use self::local::LocalArgs;
use self::ops::OpsArgs;
use self::output::OutputArgs;
use crate::boot;

/// Run and manage training jobs on a fleet of GPU machines.
#[derive(Debug, Parser)]
#[command(name = "simpletuner", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the orchestrator with its dashboard.
    Server(Box<ServerArgs>),
    /// Manage workers.
    Workers(ResourceCommand<workers::WorkersCommand>),
    /// Submit and manage jobs.
    Jobs(ResourceCommand<jobs::JobsCommand>),
    /// Manage training configurations.
    Configs(ResourceCommand<configs::ConfigsCommand>),
    /// Manage users, API tokens and sessions (works offline on the server's host).
    Auth(Box<AuthArgs>),
    /// Verify and export the audit log, also while a server runs.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Show or check the server's settings.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Back up a server's database, keys and files, also while it runs.
    Backup(backup::BackupArgs),
    /// Restore a backup.
    Restore(backup::RestoreArgs),
    /// Run the worker agent (`simpletuner-worker`).
    #[command(disable_help_flag = true)]
    Worker {
        /// Arguments of the agent; see `simpletuner worker --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Print completions for a shell.
    Completions(generate::CompletionsArgs),
    /// Print a manual page: `simpletuner man | man -l -`.
    Man(generate::ManArgs),
}

/// A group of the operator's commands: `simpletuner jobs …`.
#[derive(Debug, Args)]
struct ResourceCommand<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten, next_help_heading = "Connection")]
    connection: ConnectionArgs,
    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,
}

/// `simpletuner auth`
#[derive(Debug, Args)]
struct AuthArgs {
    #[command(flatten)]
    resource: ResourceCommand<auth::AuthCommand>,
    #[command(flatten)]
    database: auth::DatabaseArgs,
}

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
    /// Encryption key for job secrets, created on first use; must be shared by all servers [default: beside the data directory,
    /// with `.key` after its name].
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

/// Text that debug output hides.
#[derive(Clone)]
pub struct SecretString(pub String);

impl std::fmt::Debug for SecretString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

impl std::str::FromStr for SecretString {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Runs the command line.
pub fn run() -> ExitCode {
    let matches = ignore_empty_env_vars(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Worker { args } => worker::become_agent(&args),
        Command::Server(args) => {
            let set_args = matches.subcommand().map(|(_, set_args)| set_args);
            boot::main(&args, set_args.map(config::list_settings).unwrap_or_default())
        }
        Command::Audit(command) => audit::main(command),
        Command::Workers(ResourceCommand { command, connection, output }) => {
            run::with_server(&connection, &output, async |client, screen| workers::run(command, client, screen).await)
        }
        Command::Jobs(ResourceCommand { command, connection, output }) => {
            run::with_server(&connection, &output, async |client, screen| jobs::run(command, client, screen).await)
        }
        Command::Configs(ResourceCommand { command, connection, output }) => {
            run::with_server(&connection, &output, async |client, screen| configs::run(command, client, screen).await)
        }
        Command::Auth(args) => {
            let AuthArgs { resource: ResourceCommand { command, connection, output }, database } = *args;
            auth::main(command, &connection, &database, &output)
        }
        Command::Completions(args) => run::with_output(&OutputArgs::default(), async |screen| {
            generate::completions(&args, Cli::command(), screen)
        }),
        Command::Man(args) => {
            run::with_output(&OutputArgs::default(), async |screen| generate::man(&args, Cli::command(), screen))
        }
        Command::Config(command) => config::main(&command, &matches),
        Command::Backup(args) => backup::main(&args),
        Command::Restore(args) => backup::restore(&args),
    }
}
