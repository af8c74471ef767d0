//! `simpletuner auth …`: users, API tokens and sessions.
//!
//! On the server's host it needs no token, and works on the database itself while no server runs, for example to reset
//! a lost password.

mod password;
mod tokens;
mod users;

use std::process::ExitCode;

use app::protocol::access::{SessionView, UserView};
use clap::{Args, Subcommand};
use serde_json::Value;

use self::password::PasswordArgs;
use self::tokens::{SessionsCommand, TokensCommand};
use self::users::UsersCommand;
use super::client::connection::ConnectionArgs;
use super::client::credential::ApiCredential;
use super::client::{Client, ClientError};
use super::output::{Output, OutputArgs};
use super::run::{connect, parse_value, with_output};
use super::table::TableCell;
use crate::args::SecretString;
use crate::boot::without_listener::ServerWithoutListener;
use crate::exit::ExitError;

/// Commands for access.
#[derive(Debug, Clone, Subcommand)]
pub enum AuthCommand {
    /// Show the current user and permissions.
    LoginCheck,
    /// Manage users.
    #[command(subcommand)]
    Users(UsersCommand),
    /// Set a user's password; ends their sessions and revokes their API tokens.
    ResetPassword(ResetPasswordArgs),
    /// Manage API tokens.
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Manage browser sessions.
    #[command(subcommand)]
    Sessions(SessionsCommand),
}

/// `simpletuner auth reset-password`
#[derive(Debug, Clone, Args)]
pub struct ResetPasswordArgs {
    /// User name or ID.
    user: String,
    #[command(flatten)]
    password: PasswordArgs,
}

/// The database, for use while no server runs.
#[derive(Debug, Clone, Default, Args)]
pub struct DatabaseArgs {
    /// PostgreSQL database of the servers, to work on it directly.
    #[arg(long, global = true, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<SecretString>,
}

/// Runs the command with a server, or on the database of a stopped one.
pub fn main(
    command: AuthCommand,
    connection: &ConnectionArgs,
    database: &DatabaseArgs,
    output: &OutputArgs,
) -> ExitCode {
    with_output(output, async |screen| run_online_or_offline(command, connection, database, screen).await)
}

async fn run_online_or_offline(
    command: AuthCommand,
    connection: &ConnectionArgs,
    database: &DatabaseArgs,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let variable = |name: &str| std::env::var(name).ok();
    let client = connect(connection, output)?;
    // A token is for a server, and an explicit URL may be another host.
    if matches!(client.credential(), ApiCredential::Token(_)) || connection.is_server_explicit(variable) {
        return run(command, &client, output).await;
    }
    let directory = connection.data_directory(variable)?;
    let server_runs = if client.credential().is_operator() {
        // A killed server leaves its file behind.
        !matches!(client.get(&["session"]).await, Err(ClientError::Unreachable(_)))
    } else {
        database.database_url.is_none() && !ServerWithoutListener::has_database(&directory)
    };
    if server_runs {
        return run(command, &client, output).await;
    }
    let offline = ServerWithoutListener::open(&directory, database.database_url.as_ref()).await?;
    output.print_info("No server runs on this host: using its database.")?;
    let result = run(command, &Client::in_process(offline.router.clone(), offline.token.clone()), output).await;
    offline.close().await;
    result
}

/// Runs the command with a server.
pub async fn run(command: AuthCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        AuthCommand::LoginCheck => login_check(client, output).await,
        AuthCommand::Users(command) => users::run(command, client, output).await,
        AuthCommand::ResetPassword(reset) => users::reset_password(&reset.user, &reset.password, client, output).await,
        AuthCommand::Tokens(command) => tokens::run_tokens(command, client, output).await,
        AuthCommand::Sessions(command) => tokens::run_sessions(command, client, output).await,
    }
}

async fn login_check(client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let document = client.get(&["session"]).await?;
    let session: SessionView = parse_value(&document)?;
    output.print_document(&document, [session.name.clone()], |screen| {
        let permissions: Vec<&str> = session.permissions.iter().map(app::domain::access::Permission::as_str).collect();
        screen.format_facts(&[
            ("name", TableCell::from(&session.name)),
            ("may", permissions.join(" ").into()),
            ("server", TableCell::from(&session.base_url)),
            ("version", TableCell::from(&session.server_version)),
        ])
    })
}

/// Finds a user by name or id.
async fn find_user(name: &str, client: &Client) -> Result<(UserView, Value), ExitError> {
    let mut page = client.get(&["admin", "users"]).await?;
    let users: Vec<UserView> = parse_value(&page["users"])?;
    let index = users.iter().position(|user| user.name == name || user.id.as_str() == name);
    let index = index.ok_or_else(|| {
        ExitError::failed(format!("user {name:?} not found; `simpletuner auth users list` shows all users"))
    })?;
    Ok((users[index].clone(), page["users"][index].take()))
}
