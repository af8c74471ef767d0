//! `simpletuner auth …`: people, their API tokens and sessions.
//!
//! On the server's host this works without a token, and while no server runs, on the database itself: a lost password
//! is mended here.

mod keys;
mod password;
mod users;

use std::process::ExitCode;

use app::protocol::access::{SessionView, UserView};
use clap::{Args, Subcommand};
use serde_json::Value;

use self::keys::{SessionsCommand, TokensCommand};
use self::password::PasswordArgs;
use self::users::UsersCommand;
use super::Secret;
use super::client::key::Key;
use super::client::way::WayArgs;
use super::client::{Client, Failure};
use super::operate::{connect, on_screen, read};
use super::screen::{OutputArgs, Screen};
use super::table::Cell;
use crate::boot::exit::Exit;
use crate::boot::offline::Offline;

/// What can be done about access.
#[derive(Debug, Clone, Subcommand)]
pub enum AuthCommand {
    /// Say who this is to the server, and what they may do.
    LoginCheck,
    /// People.
    #[command(subcommand)]
    Users(UsersCommand),
    /// Set somebody's password; this ends their sessions and revokes their API tokens.
    ResetPassword(ResetPassword),
    /// API tokens.
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Browsers that are logged in.
    #[command(subcommand)]
    Sessions(SessionsCommand),
}

/// `simpletuner auth reset-password`
#[derive(Debug, Clone, Args)]
pub struct ResetPassword {
    /// Whose: a name or an id.
    user: String,
    #[command(flatten)]
    password: PasswordArgs,
}

/// The database, for when no server runs.
#[derive(Debug, Clone, Default, Args)]
pub struct DatabaseArgs {
    /// The PostgreSQL database of the servers, to work on it directly.
    #[arg(long, global = true, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<Secret>,
}

/// Does it: with the server that is meant, or on the database of one that does not run.
pub fn main(command: AuthCommand, way: &WayArgs, database: &DatabaseArgs, output: &OutputArgs) -> ExitCode {
    on_screen(output, async |screen| with_or_without_server(command, way, database, screen).await)
}

async fn with_or_without_server(
    command: AuthCommand,
    way: &WayArgs,
    database: &DatabaseArgs,
    screen: &mut Screen<'_>,
) -> Result<(), Exit> {
    let variable = |name: &str| std::env::var(name).ok();
    let client = connect(way, screen)?;
    // A token is for a server; and what was named by address may be far away.
    if matches!(client.key(), Key::Token(_)) || way.names_a_server(variable) {
        return run(command, &client, screen).await;
    }
    let directory = way.directory(variable)?;
    let runs = if client.key().is_operators() {
        // One that was killed has left its file behind.
        !matches!(client.get(&["session"]).await, Err(Failure::Unreachable(_)))
    } else {
        database.database_url.is_none() && !Offline::is_possible(&directory)
    };
    if runs {
        return run(command, &client, screen).await;
    }
    let offline = Offline::open(&directory, database.database_url.as_ref()).await?;
    screen.say("No server runs here: working on its database.")?;
    let ended = run(command, &Client::within(offline.router.clone(), offline.token.clone()), screen).await;
    offline.close().await;
    ended
}

/// Does it with a server.
pub async fn run(command: AuthCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        AuthCommand::LoginCheck => login_check(client, screen).await,
        AuthCommand::Users(command) => users::run(command, client, screen).await,
        AuthCommand::ResetPassword(reset) => users::reset_password(&reset.user, &reset.password, client, screen).await,
        AuthCommand::Tokens(command) => keys::tokens(command, client, screen).await,
        AuthCommand::Sessions(command) => keys::sessions(command, client, screen).await,
    }
}

async fn login_check(client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let document = client.get(&["session"]).await?;
    let session: SessionView = read(&document)?;
    screen.answer(&document, [session.name.clone()], |screen| {
        let may: Vec<&str> = session.permissions.iter().map(app::domain::access::Permission::as_str).collect();
        screen.facts(&[
            ("name", Cell::from(&session.name)),
            ("may", may.join(" ").into()),
            ("server", Cell::from(&session.base_url)),
            ("version", Cell::from(&session.server_version)),
        ])
    })
}

/// Somebody by name or id, as the API has them.
async fn find(name: &str, client: &Client) -> Result<(UserView, Value), Exit> {
    let mut page = client.get(&["admin", "users"]).await?;
    let users: Vec<UserView> = read(&page["users"])?;
    let at = users.iter().position(|user| user.name == name || user.id.as_str() == name);
    let at = at.ok_or_else(|| {
        Exit::failed(format!("there is nobody named {name:?}; `simpletuner auth users list` shows all"))
    })?;
    Ok((users[at].clone(), page["users"][at].take()))
}
