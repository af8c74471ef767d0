//! `simpletuner auth tokens …` and `simpletuner auth sessions …`: what lets somebody in.

use app::domain::access::{Permission, Permissions};
use app::domain::time::Timestamp;
use app::protocol::access::{CreateToken, CreatedToken, SessionEntry, TokenView};
use app::ui::terminal;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::find;
use crate::boot::exit::Exit;
use crate::cli::client::Client;
use crate::cli::operate::{read, words};
use crate::cli::screen::{Form, Screen};
use crate::cli::table::{Cell, Paint, Table};

/// What can be done with API tokens.
#[derive(Debug, Clone, Subcommand)]
pub enum TokensCommand {
    /// List tokens.
    List(Whose),
    /// Make a token; prints it, this once.
    Create(Create),
    /// Take a token away; it opens nothing from then on.
    Revoke(Which),
}

/// What can be done with sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List browsers that are logged in.
    List(Whose),
    /// Log a browser out.
    Revoke(Which),
}

/// Whose.
#[derive(Debug, Clone, Args)]
pub struct Whose {
    /// Of this person: a name or an id [default: one's own].
    #[arg(long)]
    user: Option<String>,
}

/// `simpletuner auth tokens create`
#[derive(Debug, Clone, Args)]
pub struct Create {
    /// What it is called: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    name: String,
    #[command(flatten)]
    whose: Whose,
    /// What it is for (repeatable) [default: all that its owner may do].
    #[arg(long = "scope", value_name = "PERMISSION", value_parser = words(Permission::ALL.map(Permission::as_str)))]
    scopes: Vec<String>,
    /// Let it expire after this many days [default: as the server is set, 90].
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u32>,
    /// Let it never expire.
    #[arg(long, conflicts_with = "expires_in_days")]
    never_expires: bool,
}

/// Which one.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// Its id, as the list shows it.
    id: String,
}

/// Does it.
pub async fn tokens(command: TokensCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        TokensCommand::Create(create) => self::create(create, client, screen).await,
        TokensCommand::List(whose) => {
            let document = of(&whose, "tokens", client).await?;
            let tokens: Vec<TokenView> = read(&document["tokens"])?;
            let (ids, now) = (tokens.iter().map(|token| token.id.to_string()), screen.now());
            screen.answer(&document, ids, |screen| screen.table(&tokens_table(&tokens, now)))
        }
        TokensCommand::Revoke(Which { id }) => {
            screen.confirm(&format!("Take the token {id} away? Whatever uses it is shut out."))?;
            let document = client.delete(&["account", "tokens", &id]).await?;
            screen.say(format!("{id} opens nothing any more."))?;
            screen.answer(&document, [id], |_| String::new())
        }
    }
}

/// Does it.
pub async fn sessions(command: SessionsCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        SessionsCommand::List(whose) => {
            let document = of(&whose, "sessions", client).await?;
            let sessions: Vec<SessionEntry> = read(&document["sessions"])?;
            let (ids, now) = (sessions.iter().map(|session| session.id.to_string()), screen.now());
            screen.answer(&document, ids, |screen| screen.table(&sessions_table(&sessions, now)))
        }
        SessionsCommand::Revoke(Which { id }) => {
            let document = client.delete(&["account", "sessions", &id]).await?;
            screen.say(format!("{id} is logged out."))?;
            screen.answer(&document, [id], |_| String::new())
        }
    }
}

/// The document with somebody's `field`.
async fn of(whose: &Whose, field: &str, client: &Client) -> Result<Value, Exit> {
    match &whose.user {
        None if client.key().is_operators() => Err(nobody()),
        None => Ok(client.get(&["account", field]).await?),
        Some(name) => {
            let (user, _) = find(name, client).await?;
            let mut detail = client.get(&["admin", "users", user.id.as_str()]).await?;
            let mut document = Value::Object(serde_json::Map::new());
            document[field] = detail[field].take();
            Ok(document)
        }
    }
}

fn nobody() -> Exit {
    Exit::usage("whose? On the server's host you are nobody in particular: add --user NAME".to_owned())
}

async fn create(create: Create, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let scopes: Permissions = create.scopes.iter().filter_map(|scope| Permission::parse(scope)).collect();
    let body = CreateToken {
        name: create.name,
        scopes: (!create.scopes.is_empty()).then_some(scopes),
        expires_in_days: create.expires_in_days,
        never_expires: create.never_expires,
    };
    let document = match &create.whose.user {
        None if client.key().is_operators() => return Err(nobody()),
        None => client.post(&["account", "tokens"], &body).await?,
        Some(name) => {
            let (user, _) = find(name, client).await?;
            client.post(&["admin", "users", user.id.as_str(), "tokens"], &body).await?
        }
    };
    let created: CreatedToken = read(&document)?;
    screen.say(format!("{} ({}) is this, shown this once:", created.token.name, created.token.id))?;
    screen.say(match created.token.expires_at {
        Some(end) => format!("It expires on {}.", terminal::moment(end)),
        None => "It never expires.".to_owned(),
    })?;
    match screen.form {
        Form::Json => screen.line(format!("{document:#}")),
        Form::Words | Form::Ids => screen.line(&created.secret),
    }
}

fn tokens_table(tokens: &[TokenView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "FOR", "ENDS", "USED", "ID!"]);
    for token in tokens {
        let scopes = token.scopes.map(|scopes| scopes.iter().map(Permission::as_str).collect::<Vec<_>>().join(" "));
        let over = token.expires_at.is_some_and(|end| end <= now);
        let ends = token.expires_at.map_or_else(|| "never".to_owned(), terminal::moment);
        table.row(vec![
            Cell::from(&token.name),
            scopes.unwrap_or_else(|| "all that its owner may do".to_owned()).into(),
            Cell::new(ends, if over { Paint::Bad } else { Paint::Plain }),
            token.last_used_at.map_or_else(|| "never".to_owned(), |at| terminal::ago(at, now)).into(),
            Cell::from(token.id.as_str()),
        ]);
    }
    table
}

fn sessions_table(sessions: &[SessionEntry], now: Timestamp) -> Table {
    let mut table = Table::new(&["HOST", "BROWSER", "LOGGED IN", "USED", "ID!"]);
    for session in sessions {
        table.row(vec![
            Cell::from(&session.host),
            Cell::from(&session.agent),
            terminal::moment(session.created_at).into(),
            terminal::ago(session.seen_at, now).into(),
            Cell::from(session.id.as_str()),
        ]);
    }
    table
}
