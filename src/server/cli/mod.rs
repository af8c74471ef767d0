//! The command line: `simpletuner server …`, `simpletuner worker …` and the operator's commands.

pub mod audit;
pub mod auth;
mod backup;
mod browser;
pub mod client;
mod config;
mod configs;
mod generate;
mod gpus;
mod jobs;
pub mod output;
mod progress;
mod run;
mod shares;
mod table;
mod teams;
#[cfg(test)]
mod tests;
mod worker;
mod workers;

use std::ffi::OsString;
use std::process::ExitCode;

use app::command_line::ignore_empty_env_vars;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::client::connection::ConnectionArgs;
use self::output::OutputArgs;
use crate::args::ServerArgs;
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
    /// Manage teams, which share the fleet.
    Teams(ResourceCommand<teams::TeamsCommand>),
    /// Show who gets the next GPU.
    Shares(ResourceCommand<shares::SharesCommand>),
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
        Command::Teams(ResourceCommand { command, connection, output }) => {
            run::with_server(&connection, &output, async |client, screen| teams::run(command, client, screen).await)
        }
        Command::Shares(ResourceCommand { command, connection, output }) => {
            run::with_server(&connection, &output, async |client, screen| shares::run(command, client, screen).await)
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
