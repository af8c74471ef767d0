//! `simpletuner auth tokens …` and `simpletuner auth sessions …`

use app::domain::access::{Permission, Permissions};
use app::domain::time::Timestamp;
use app::protocol::access::{CreateToken, CreatedToken, SessionEntry, TokenView};
use app::ui::terminal;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::find_user;
use crate::cli::client::Client;
use crate::cli::output::{Output, OutputFormat};
use crate::cli::run::{one_of, parse_value};
use crate::cli::table::{CellStyle, Table, TableCell};
use crate::exit::ExitError;

/// Commands for API tokens.
#[derive(Debug, Clone, Subcommand)]
pub enum TokensCommand {
    /// List tokens.
    List(OwnerArgs),
    /// Create a token and print it (shown once).
    Create(CreateTokenArgs),
    /// Revoke a token.
    Revoke(IdArgs),
}

/// Commands for sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List browser sessions.
    List(OwnerArgs),
    /// End a browser session.
    Revoke(IdArgs),
}

/// The owner of tokens or sessions.
#[derive(Debug, Clone, Args)]
pub struct OwnerArgs {
    /// User name or ID [default: you].
    #[arg(long)]
    user: Option<String>,
}

/// `simpletuner auth tokens create`
#[derive(Debug, Clone, Args)]
pub struct CreateTokenArgs {
    /// Token name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    name: String,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Scope (repeatable) [default: all permissions of the owner].
    #[arg(long = "scope", value_name = "PERMISSION", value_parser = one_of(Permission::ALL.map(Permission::as_str)))]
    scopes: Vec<String>,
    /// Expiry in days [default: the server's setting, 90].
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u32>,
    /// Never expire.
    #[arg(long, conflicts_with = "expires_in_days")]
    never_expires: bool,
}

/// A token or session by ID.
#[derive(Debug, Clone, Args)]
pub struct IdArgs {
    /// ID from the list.
    id: String,
}

pub async fn run_tokens(command: TokensCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        TokensCommand::Create(create) => self::create_token(create, client, output).await,
        TokensCommand::List(owner) => {
            let document = fetch_for_owner(&owner, "tokens", client).await?;
            let tokens: Vec<TokenView> = parse_value(&document["tokens"])?;
            let (ids, now) = (tokens.iter().map(|token| token.id.to_string()), output.now());
            output.print_document(&document, ids, |screen| screen.format_table(&tokens_table(&tokens, now)))
        }
        TokensCommand::Revoke(IdArgs { id }) => {
            output.confirm(&format!("Revoke the token {id}? Everything that uses it stops working."))?;
            let document = client.delete(&["account", "tokens", &id]).await?;
            output.print_info(format!("Revoked {id}."))?;
            output.print_document(&document, [id], |_| String::new())
        }
    }
}

pub async fn run_sessions(command: SessionsCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        SessionsCommand::List(owner) => {
            let document = fetch_for_owner(&owner, "sessions", client).await?;
            let sessions: Vec<SessionEntry> = parse_value(&document["sessions"])?;
            let (ids, now) = (sessions.iter().map(|session| session.id.to_string()), output.now());
            output.print_document(&document, ids, |screen| screen.format_table(&sessions_table(&sessions, now)))
        }
        SessionsCommand::Revoke(IdArgs { id }) => {
            let document = client.delete(&["account", "sessions", &id]).await?;
            output.print_info(format!("Ended {id}."))?;
            output.print_document(&document, [id], |_| String::new())
        }
    }
}

/// Returns the document with the owner's `field`.
async fn fetch_for_owner(owner: &OwnerArgs, field: &str, client: &Client) -> Result<Value, ExitError> {
    match &owner.user {
        None if client.credential().is_operator() => Err(no_owner_error()),
        None => Ok(client.get(&["account", field]).await?),
        Some(name) => {
            let (user, _) = find_user(name, client).await?;
            let mut detail = client.get(&["admin", "users", user.id.as_str()]).await?;
            let mut document = Value::Object(serde_json::Map::new());
            document[field] = detail[field].take();
            Ok(document)
        }
    }
}

fn no_owner_error() -> ExitError {
    ExitError::usage("the operator has no user account: add --user NAME".to_owned())
}

async fn create_token(create: CreateTokenArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let scopes: Permissions = create.scopes.iter().filter_map(|scope| Permission::parse(scope)).collect();
    let body = CreateToken {
        name: create.name,
        scopes: (!create.scopes.is_empty()).then_some(scopes),
        expires_in_days: create.expires_in_days,
        never_expires: create.never_expires,
    };
    let document = match &create.owner.user {
        None if client.credential().is_operator() => return Err(no_owner_error()),
        None => client.post(&["account", "tokens"], &body).await?,
        Some(name) => {
            let (user, _) = find_user(name, client).await?;
            client.post(&["admin", "users", user.id.as_str(), "tokens"], &body).await?
        }
    };
    let created: CreatedToken = parse_value(&document)?;
    output.print_info(format!("Token {} ({}), shown once:", created.token.name, created.token.id))?;
    output.print_info(match created.token.expires_at {
        Some(end) => format!("It expires on {}.", terminal::timestamp(end)),
        None => "It never expires.".to_owned(),
    })?;
    match output.format {
        OutputFormat::Json => output.print_line(format!("{document:#}")),
        OutputFormat::Text | OutputFormat::Ids => output.print_line(&created.secret),
    }
}

fn tokens_table(tokens: &[TokenView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "SCOPES", "EXPIRES", "USED", "ID!"]);
    for token in tokens {
        let scopes = token.scopes.map(|scopes| scopes.iter().map(Permission::as_str).collect::<Vec<_>>().join(" "));
        let is_expired = token.expires_at.is_some_and(|end| end <= now);
        let expiry = token.expires_at.map_or_else(|| "never".to_owned(), terminal::timestamp);
        table.add_row(vec![
            TableCell::from(&token.name),
            scopes.unwrap_or_else(|| "all of the owner's".to_owned()).into(),
            TableCell::new(expiry, if is_expired { CellStyle::Error } else { CellStyle::Plain }),
            token.last_used_at.map_or_else(|| "never".to_owned(), |at| terminal::ago(at, now)).into(),
            TableCell::from(token.id.as_str()),
        ]);
    }
    table
}

fn sessions_table(sessions: &[SessionEntry], now: Timestamp) -> Table {
    let mut table = Table::new(&["HOST", "BROWSER", "SIGNED IN", "USED", "ID!"]);
    for session in sessions {
        table.add_row(vec![
            TableCell::from(&session.host),
            TableCell::from(&session.agent),
            terminal::timestamp(session.created_at).into(),
            terminal::ago(session.seen_at, now).into(),
            TableCell::from(session.id.as_str()),
        ]);
    }
    table
}
