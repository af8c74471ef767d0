//! The command line: `simpletuner server …`, `simpletuner worker …` and the commands beside them.

mod accounts;
pub mod audit;
pub mod auth;
mod backup;
pub mod client;
mod config;
mod configs;
mod edge;
mod generate;
mod gpus;
mod jobs;
pub mod limits;
pub mod local;
mod operate;
mod ops;
pub mod screen;
mod table;
#[cfg(test)]
mod tests;
pub mod visible;
pub mod worker;
mod workers;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use app::command_line::ignoring_empty_variables;
use clap::builder::BoolishValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::accounts::AccountArgs;
use self::client::way::WayArgs;
use self::edge::EdgeArgs;
use self::limits::LimitArgs;
use self::local::LocalArgs;
use self::ops::OpsArgs;
use self::screen::OutputArgs;
use crate::boot;

/// An orchestrator for training jobs on a fleet of GPU machines.
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
    /// Make, watch and drain workers.
    Workers(Noun<workers::WorkersCommand>),
    /// Submit jobs and follow them.
    Jobs(Noun<jobs::JobsCommand>),
    /// Add and show training configurations.
    Configs(Noun<configs::ConfigsCommand>),
    /// People, API tokens and sessions; also while no server runs.
    Auth(Box<AuthArgs>),
    /// Read and verify the audit trail, also while a server runs.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Print or check the server's settings.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Copy a server's database, keys and files, also while it runs.
    Backup(backup::BackupArgs),
    /// Put such a copy in the place of an empty server.
    Restore(backup::RestoreArgs),
    /// Run the agent on a GPU machine (becomes `simpletuner-worker`).
    #[command(disable_help_flag = true)]
    Worker {
        /// Everything is for the agent; `simpletuner worker --help` is its help.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Print completions for a shell.
    Completions(generate::CompletionsArgs),
    /// Print a manual page: `simpletuner man | man -l -`.
    Man(generate::ManArgs),
}

/// A noun of the operator's commands: `simpletuner jobs …`.
#[derive(Debug, Args)]
struct Noun<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten, next_help_heading = "Which server")]
    way: WayArgs,
    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,
}

/// `simpletuner auth`
#[derive(Debug, Args)]
struct AuthArgs {
    #[command(flatten)]
    noun: Noun<auth::AuthCommand>,
    #[command(flatten)]
    database: auth::DatabaseArgs,
}

/// `simpletuner server`
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Address to listen on; 0.0.0.0 for every network of this machine.
    #[arg(long, env = "SIMPLETUNER_HOST", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on.
    #[arg(long, env = "SIMPLETUNER_PORT", default_value_t = 8001)]
    pub port: u16,
    /// TLS and proxies.
    #[command(flatten)]
    pub edge: EdgeArgs,
    /// Rates and connections.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Passwords, sessions and tokens.
    #[command(flatten)]
    pub accounts: AccountArgs,
    /// Metrics and free space.
    #[command(flatten)]
    pub ops: OpsArgs,
    /// Where the database, logs and artifacts are kept [default: simpletuner in the user's data directory].
    #[arg(long, env = "SIMPLETUNER_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// The key that secrets for jobs are kept under, made when the first is kept; several servers need the same one
    /// [default: beside the data directory, with `.key` after its name].
    #[arg(long, env = "SIMPLETUNER_SECRET_KEY_FILE", value_name = "FILE")]
    pub secret_key_file: Option<PathBuf>,
    /// A PostgreSQL database that several servers may share [default: SQLite in the data directory].
    #[arg(long, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<Secret>,
    /// Import every directory below this one that holds a `config.json`, at start.
    #[arg(long, env = "SIMPLETUNER_CONFIGS_DIR")]
    pub configs_dir: Option<PathBuf>,
    /// Jobs on this machine.
    #[command(flatten)]
    pub local: LocalArgs,
    /// No accounts: whoever reaches this machine's loopback address is the admin.
    #[arg(long, env = "SIMPLETUNER_SINGLE_USER", value_parser = BoolishValueParser::new())]
    pub single_user: bool,
    /// Seconds without a heartbeat after which a worker counts as offline.
    #[arg(long, env = "SIMPLETUNER_HEARTBEAT_TIMEOUT", default_value_t = 120, value_parser = clap::value_parser!(u32).range(4..=86_400))]
    pub heartbeat_timeout: u32,
    /// How many jobs may run at once in all; left out, as many as there are workers for.
    #[arg(long, env = "SIMPLETUNER_MAX_RUNNING_JOBS", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_jobs: Option<u32>,
    /// How many jobs of one person may run at once.
    #[arg(long, env = "SIMPLETUNER_MAX_RUNNING_JOBS_PER_USER", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_jobs_per_user: Option<u32>,
    /// Match jobs by the labels that admins gave workers, never by those that agents report.
    #[arg(long, env = "SIMPLETUNER_IGNORE_REPORTED_LABELS", value_parser = BoolishValueParser::new())]
    pub ignore_reported_labels: bool,
    /// An admin API token to create or keep, for automation.
    #[arg(long, env = "SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", hide = true, hide_env_values = true)]
    pub bootstrap_admin_token: Option<Secret>,
    /// A file that holds that token.
    #[arg(long, env = "SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN_FILE")]
    pub bootstrap_admin_token_file: Option<PathBuf>,
    /// Remove entries of the audit trail that are older than so many days [default: keep them].
    #[arg(long, env = "SIMPLETUNER_AUDIT_RETENTION_DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub audit_retention_days: Option<u32>,
    /// Log more.
    #[arg(short, long)]
    pub verbose: bool,
}

/// Text that is never printed.
#[derive(Clone)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[secret]")
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Does what the command line says.
pub fn run() -> ExitCode {
    let matches = ignoring_empty_variables(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Worker { args } => worker::become_agent(&args),
        Command::Server(args) => {
            let said = matches.subcommand().map(|(_, said)| said);
            boot::main(&args, said.map(config::settings).unwrap_or_default())
        }
        Command::Audit(command) => audit::main(command),
        Command::Workers(Noun { command, way, output }) => {
            operate::main(&way, &output, async |client, screen| workers::run(command, client, screen).await)
        }
        Command::Jobs(Noun { command, way, output }) => {
            operate::main(&way, &output, async |client, screen| jobs::run(command, client, screen).await)
        }
        Command::Configs(Noun { command, way, output }) => {
            operate::main(&way, &output, async |client, screen| configs::run(command, client, screen).await)
        }
        Command::Auth(args) => {
            let AuthArgs { noun: Noun { command, way, output }, database } = *args;
            auth::main(command, &way, &database, &output)
        }
        Command::Completions(args) => operate::on_screen(&OutputArgs::default(), async |screen| {
            generate::completions(&args, Cli::command(), screen)
        }),
        Command::Man(args) => {
            operate::on_screen(&OutputArgs::default(), async |screen| generate::man(&args, Cli::command(), screen))
        }
        Command::Config(command) => config::main(&command, &matches),
        Command::Backup(args) => backup::main(&args),
        Command::Restore(args) => backup::restore(&args),
    }
}
