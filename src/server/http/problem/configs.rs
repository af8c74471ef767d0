//! Problems of configurations.

use axum::http::StatusCode;

use super::ApiError;
use crate::service::error::ServiceError;

/// The field that confirms the reviewed revision.
const REVIEWED_REVISION: &str = "reviewed_revision";
const CHANGED_BY: &str = "changed_by";

/// Returns the message with similar names and how to get the list.
pub fn not_found_text(name: &str, near: &[String]) -> String {
    let near = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(", ")) };
    format!(
        "Configuration {name:?} not found.{near} GET /api/configs lists them; `simpletuner configs push DIRECTORY` or PUT \
         /api/configs/NAME adds one."
    )
}

/// Returns the problem of a configuration error.
pub fn config_problem(error: ServiceError) -> ApiError {
    match error {
        ServiceError::NotConfigOwner { name, owner } => not_yours(&name, owner),
        ServiceError::ConfigChanged { name, seen, newest, changed_by } => {
            config_changed(&name, seen, newest, changed_by)
        }
        other => other.into(),
    }
}

/// The configuration belongs to another user.
fn not_yours(name: &str, owner: Option<String>) -> ApiError {
    let ownership =
        owner.as_ref().map_or_else(|| "has no known owner".to_owned(), |owner| format!("belongs to {owner}"));
    let detail = format!(
        "The configuration {name:?} {ownership}, and changing it requires `config.manage`. Use another name for yours."
    );
    let mut error = ApiError::new(StatusCode::FORBIDDEN, "config_not_yours", detail);
    error.extra.insert("owner".to_owned(), owner.into());
    error
}

/// Other users have changed the configuration since the caller reviewed it.
fn config_changed(name: &str, seen: u32, newest: u32, changed_by: Option<String>) -> ApiError {
    let who = changed_by.as_deref().unwrap_or("another user");
    let detail = format!(
        "{who} has changed the configuration {name:?} since revision {seen}. Review revision {newest}, and submit with \
         config_revision {newest} to run it, or with config_revision {seen} to run what you ran before."
    );
    let mut error = ApiError::new(StatusCode::CONFLICT, "config_changed", detail);
    let fields = [("revision", newest.into()), (REVIEWED_REVISION, seen.into()), (CHANGED_BY, changed_by.into())];
    error.extra.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    error
}

/// The file contains code that Python could run.
pub fn code_file_text(path: &str) -> String {
    format!(
        "The file {path:?} is code, which Python could run on the workers. Configurations contain settings only: remove it, or \
         start the server, and the workers that may run it, with --allow-code."
    )
}
