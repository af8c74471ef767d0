//! `simpletuner auth users …`

use app::domain::access::Role;
use app::protocol::access::{CreateUser, EditUser, PasswordReset, ResetPassword, UserView};
use app::ui::terminal;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use super::find;
use super::password::{Password, PasswordArgs};
use crate::boot::exit::Exit;
use crate::cli::client::{Call, Client};
use crate::cli::operate::{read, words};
use crate::cli::screen::{Form, Screen};
use crate::cli::table::{Cell, Paint, Table};

/// What can be done with people.
#[derive(Debug, Clone, Subcommand)]
pub enum UsersCommand {
    /// List people.
    List,
    /// Add somebody.
    Create(Create),
    /// Say what somebody is here.
    SetRole(SetRole),
    /// Let nothing of theirs open anything; they are logged out at once.
    Disable(Which),
    /// Let them in again.
    Enable(Which),
    /// Set somebody's password; this ends their sessions and revokes their API tokens.
    ResetPassword(super::ResetPassword),
    /// Remove their second factors: they have lost them and the recovery codes.
    RemoveFactors(Which),
}

/// `simpletuner auth users create`
#[derive(Debug, Clone, Args)]
pub struct Create {
    /// The name to log in with: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    name: String,
    /// What they are here.
    #[arg(long, value_parser = words(Role::ALL.map(Role::as_str)))]
    role: String,
    #[command(flatten)]
    password: PasswordArgs,
    /// They get no password, and use API tokens only.
    #[arg(long, conflicts_with_all = ["password_file", "generate_password"])]
    no_password: bool,
}

/// `simpletuner auth users set-role`
#[derive(Debug, Clone, Args)]
pub struct SetRole {
    #[command(flatten)]
    which: Which,
    /// What they are from now on.
    #[arg(value_parser = words(Role::ALL.map(Role::as_str)))]
    role: String,
}

/// Whom.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// A name or an id.
    user: String,
}

/// Does it.
pub async fn run(command: UsersCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        UsersCommand::List => list(client, screen).await,
        UsersCommand::Create(create) => self::create(create, client, screen).await,
        UsersCommand::SetRole(SetRole { which, role }) => {
            let (user, _) = find(&which.user, client).await?;
            let document = edit(&user, EditUser { role: Role::parse(&role), disabled: None }, client).await?;
            screen.say(format!("{} is {role} from now on.", user.name))?;
            changed(&document, screen)
        }
        UsersCommand::Disable(which) => {
            let (user, _) = find(&which.user, client).await?;
            screen
                .confirm(&format!("Shut out {}? Their jobs go on, and nothing of theirs opens anything.", user.name))?;
            let document = edit(&user, EditUser { role: None, disabled: Some(true) }, client).await?;
            screen.say(format!("{} is shut out.", user.name))?;
            changed(&document, screen)
        }
        UsersCommand::Enable(which) => {
            let (user, _) = find(&which.user, client).await?;
            let document = edit(&user, EditUser { role: None, disabled: Some(false) }, client).await?;
            screen.say(format!("{} is let in again.", user.name))?;
            changed(&document, screen)
        }
        UsersCommand::RemoveFactors(which) => {
            let (user, _) = find(&which.user, client).await?;
            screen.confirm(&format!(
                "Remove the second factor of {}? Their password alone lets them in then.",
                user.name
            ))?;
            let document = client.delete(&["admin", "users", user.id.as_str(), "factors"]).await?;
            screen.say(format!("{} has no second factor any more.", user.name))?;
            screen.answer(&document, [user.id.to_string()], |_| String::new())
        }
        UsersCommand::ResetPassword(reset) => reset_password(&reset.user, &reset.password, client, screen).await,
    }
}

/// Gives somebody another password.
pub async fn reset_password(
    user: &str,
    password: &PasswordArgs,
    client: &Client,
    screen: &mut Screen<'_>,
) -> Result<(), Exit> {
    let (user, _) = find(user, client).await?;
    let password = needed(password.choose(&user.name, screen)?)?;
    let body = ResetPassword { password: password.text.clone() };
    let document = client.post(&["admin", "users", user.id.as_str(), "password"], &body).await?;
    let reset: PasswordReset = read(&document)?;
    let (sessions, tokens) = (reset.sessions_ended, reset.tokens_revoked);
    screen
        .say(format!("{} has a new password. Sessions ended: {sessions}; API tokens revoked: {tokens}.", user.name))?;
    told(&document, &user.name, Some(password), screen)
}

async fn create(create: Create, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let password = if create.no_password { None } else { Some(needed(create.password.choose(&create.name, screen)?)?) };
    let role = Role::parse(&create.role).unwrap_or(Role::Viewer);
    let text = password.as_ref().map(|password| password.text.clone());
    let document = client.post(&["admin", "users"], &CreateUser { name: create.name, role, password: text }).await?;
    let user: UserView = read(&document)?;
    screen.say(format!("{} ({}) is added as {}.", user.name, user.id, user.role.as_str()))?;
    told(&document, &user.name, password, screen)
}

fn needed(password: Option<Password>) -> Result<Password, Exit> {
    password.ok_or_else(|| {
        Exit::usage(
            "nobody can be asked for a password here: add --password-file FILE, or --generate-password".to_owned(),
        )
    })
}

/// The answer; a password that was made up here goes to stdout, alone or in the document.
fn told(document: &Value, name: &str, password: Option<Password>, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let Some(news) = password.filter(|password| password.is_news) else {
        return screen.answer(document, [name.to_owned()], |_| String::new());
    };
    if screen.form != Form::Json {
        return screen.line(&news.text);
    }
    let mut document = document.clone();
    document["password"] = news.text.into();
    screen.line(format!("{document:#}"))
}

async fn edit(user: &UserView, edit: EditUser, client: &Client) -> Result<Value, Exit> {
    let segments = ["admin", "users", user.id.as_str()];
    Ok(client.json(Call::new(Method::PATCH, &segments).body(&edit)).await?)
}

fn changed(document: &Value, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let user: UserView = read(document)?;
    screen.answer(document, [user.id.to_string()], |_| String::new())
}

async fn list(client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let page = client.list(&["admin", "users"], &Value::Object(serde_json::Map::new()), "users", None).await?;
    let users: Vec<UserView> = read(&page["users"])?;
    if users.is_empty() {
        screen.say("Nobody yet. Add an admin with `simpletuner auth users create NAME --role admin`.")?;
    }
    let ids = users.iter().map(|user| user.id.to_string());
    screen.answer(&page, ids, |screen| if users.is_empty() { String::new() } else { screen.table(&table(&users)) })
}

fn table(users: &[UserView]) -> Table {
    let mut table = Table::new(&["NAME!", "ROLE", "STATE", "ADDED", "ID!"]);
    for user in users {
        let state = if user.disabled { Cell::new("shut out", Paint::Bad) } else { Cell::new("let in", Paint::Good) };
        table.row(vec![
            Cell::from(&user.name),
            user.role.as_str().into(),
            state,
            terminal::moment(user.created_at).into(),
            Cell::from(user.id.as_str()),
        ]);
    }
    table
}
