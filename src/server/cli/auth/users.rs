//! `simpletuner auth users …`

use app::domain::access::Role;
use app::protocol::access::{CreateUser, EditUser, PasswordReset, ResetPassword, UserView};
use app::ui::terminal;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;

use super::find_user;
use super::password::{ChosenPassword, PasswordArgs};
use crate::cli::client::{ApiRequest, Client};
use crate::cli::output::{Output, OutputFormat};
use crate::cli::run::{one_of, parse_value};
use crate::cli::table::{CellStyle, Table, TableCell};
use crate::exit::ExitError;

/// Commands for users.
#[derive(Debug, Clone, Subcommand)]
pub enum UsersCommand {
    /// List users.
    List,
    /// Add a user.
    Create(CreateUserArgs),
    /// Set a user's role.
    SetRole(SetRoleArgs),
    /// Disable a user and revoke all of their tokens and sessions.
    Disable(UserArgs),
    /// Enable a user.
    Enable(UserArgs),
    /// Set a user's password; ends their sessions and revokes their API tokens.
    ResetPassword(super::ResetPasswordArgs),
    /// Remove a user's second factors, if the user has lost them and the recovery codes.
    RemoveFactors(UserArgs),
}

/// `simpletuner auth users create`
#[derive(Debug, Clone, Args)]
pub struct CreateUserArgs {
    /// User name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    name: String,
    /// Role.
    #[arg(long, value_parser = one_of(Role::ALL.map(Role::as_str)))]
    role: String,
    #[command(flatten)]
    password: PasswordArgs,
    /// Create the user without a password, for API tokens only.
    #[arg(long, conflicts_with_all = ["password_file", "generate_password"])]
    no_password: bool,
}

/// `simpletuner auth users set-role`
#[derive(Debug, Clone, Args)]
pub struct SetRoleArgs {
    #[command(flatten)]
    target: UserArgs,
    /// New role.
    #[arg(value_parser = one_of(Role::ALL.map(Role::as_str)))]
    role: String,
}

/// A user by name or ID.
#[derive(Debug, Clone, Args)]
pub struct UserArgs {
    /// User name or ID.
    user: String,
}

pub async fn run(command: UsersCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        UsersCommand::List => list_users(client, output).await,
        UsersCommand::Create(create) => self::create_user(create, client, output).await,
        UsersCommand::SetRole(SetRoleArgs { target, role }) => {
            let (user, _) = find_user(&target.user, client).await?;
            let document = update_user(&user, EditUser { role: Role::parse(&role), disabled: None }, client).await?;
            output.print_info(format!("{} is now {role}.", user.name))?;
            print_updated(&document, output)
        }
        UsersCommand::Disable(target) => {
            let (user, _) = find_user(&target.user, client).await?;
            output.confirm(&format!(
                "Disable {}? Their jobs continue; all of their tokens and sessions are revoked.",
                user.name
            ))?;
            let document = update_user(&user, EditUser { role: None, disabled: Some(true) }, client).await?;
            output.print_info(format!("Disabled {}.", user.name))?;
            print_updated(&document, output)
        }
        UsersCommand::Enable(target) => {
            let (user, _) = find_user(&target.user, client).await?;
            let document = update_user(&user, EditUser { role: None, disabled: Some(false) }, client).await?;
            output.print_info(format!("Enabled {}.", user.name))?;
            print_updated(&document, output)
        }
        UsersCommand::RemoveFactors(target) => {
            let (user, _) = find_user(&target.user, client).await?;
            output.confirm(&format!(
                "Remove the second factors of {}? Their password alone is then sufficient to sign in.",
                user.name
            ))?;
            let document = client.delete(&["admin", "users", user.id.as_str(), "factors"]).await?;
            output.print_info(format!("Removed the second factors of {}.", user.name))?;
            output.print_document(&document, [user.id.to_string()], |_| String::new())
        }
        UsersCommand::ResetPassword(reset) => reset_password(&reset.user, &reset.password, client, output).await,
    }
}

/// Sets a user's password.
pub async fn reset_password(
    user: &str,
    password: &PasswordArgs,
    client: &Client,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let (user, _) = find_user(user, client).await?;
    let password = require_password(password.resolve(&user.name, output)?)?;
    let body = ResetPassword { password: password.text.clone() };
    let document = client.post(&["admin", "users", user.id.as_str(), "password"], &body).await?;
    let reset: PasswordReset = parse_value(&document)?;
    let (sessions, tokens) = (reset.sessions_ended, reset.tokens_revoked);
    output.print_info(format!(
        "Changed the password of {}. Sessions ended: {sessions}; API tokens revoked: {tokens}.",
        user.name
    ))?;
    print_result(&document, &user.name, Some(password), output)
}

async fn create_user(create: CreateUserArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let password =
        if create.no_password { None } else { Some(require_password(create.password.resolve(&create.name, output)?)?) };
    let role = Role::parse(&create.role).unwrap_or(Role::Viewer);
    let text = password.as_ref().map(|password| password.text.clone());
    let document = client.post(&["admin", "users"], &CreateUser { name: create.name, role, password: text }).await?;
    let user: UserView = parse_value(&document)?;
    output.print_info(format!("Added {} ({}) as {}.", user.name, user.id, user.role.as_str()))?;
    print_result(&document, &user.name, password, output)
}

fn require_password(password: Option<ChosenPassword>) -> Result<ChosenPassword, ExitError> {
    password.ok_or_else(|| {
        ExitError::usage(
            "there is no terminal to enter a password: add --password-file FILE, or --generate-password".to_owned(),
        )
    })
}

/// Prints the result; a generated password goes to stdout, alone or in the document.
fn print_result(
    document: &Value,
    name: &str,
    password: Option<ChosenPassword>,
    output: &mut Output<'_>,
) -> Result<(), ExitError> {
    let Some(generated) = password.filter(|password| password.is_generated) else {
        return output.print_document(document, [name.to_owned()], |_| String::new());
    };
    if output.format != OutputFormat::Json {
        return output.print_line(&generated.text);
    }
    let mut document = document.clone();
    document["password"] = generated.text.into();
    output.print_line(format!("{document:#}"))
}

async fn update_user(user: &UserView, edit: EditUser, client: &Client) -> Result<Value, ExitError> {
    let segments = ["admin", "users", user.id.as_str()];
    Ok(client.send_json(ApiRequest::new(Method::PATCH, &segments).body(&edit)).await?)
}

fn print_updated(document: &Value, output: &mut Output<'_>) -> Result<(), ExitError> {
    let user: UserView = parse_value(document)?;
    output.print_document(document, [user.id.to_string()], |_| String::new())
}

async fn list_users(client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let page = client.list_all(&["admin", "users"], &Value::Object(serde_json::Map::new()), "users", None).await?;
    let users: Vec<UserView> = parse_value(&page["users"])?;
    if users.is_empty() {
        output.print_info("No users. Add an admin with `simpletuner auth users create NAME --role admin`.")?;
    }
    let ids = users.iter().map(|user| user.id.to_string());
    output.print_document(&page, ids, |screen| {
        if users.is_empty() { String::new() } else { screen.format_table(&table(&users)) }
    })
}

fn table(users: &[UserView]) -> Table {
    let mut table = Table::new(&["NAME!", "ROLE", "STATE", "ADDED", "ID!"]);
    for user in users {
        let state = if user.disabled {
            TableCell::new("disabled", CellStyle::Error)
        } else {
            TableCell::new("active", CellStyle::Success)
        };
        table.add_row(vec![
            TableCell::from(&user.name),
            user.role.as_str().into(),
            state,
            terminal::timestamp(user.created_at).into(),
            TableCell::from(user.id.as_str()),
        ]);
    }
    table
}
