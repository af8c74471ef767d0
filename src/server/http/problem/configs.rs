//! What is wrong with configurations.

use axum::http::StatusCode;

use super::ApiError;
use crate::service::refusal::Refusal;

/// The fields of a change that has to be seen.
const REVIEWED: &str = "reviewed_revision";
const CHANGED_BY: &str = "changed_by";

/// The problem of a refusal about a configuration.
pub fn refused(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::ConfigNotYours { name, owner } => not_yours(&name, owner),
        Refusal::ConfigChanged { name, seen, newest, changed_by } => changed(&name, seen, newest, changed_by),
        other => other.into(),
    }
}

/// A configuration of somebody else.
fn not_yours(name: &str, owner: Option<String>) -> ApiError {
    let whose = owner.as_ref().map_or_else(|| "has no known owner".to_owned(), |owner| format!("belongs to {owner}"));
    let detail = format!(
        "The configuration {name:?} {whose}, and to change it takes `config.manage`. Store yours under another name."
    );
    let mut error = ApiError::new(StatusCode::FORBIDDEN, "config_not_yours", detail);
    error.extra.insert("owner".to_owned(), owner.into());
    error
}

/// A configuration that others have changed since it was seen.
fn changed(name: &str, seen: u32, newest: u32, changed_by: Option<String>) -> ApiError {
    let who = changed_by.as_deref().unwrap_or("somebody else");
    let detail = format!(
        "{who} has changed the configuration {name:?} since revision {seen}. Look at revision {newest}, and submit with \
         config_revision {newest} to run it, or with config_revision {seen} to run what you ran before."
    );
    let mut error = ApiError::new(StatusCode::CONFLICT, "config_changed", detail);
    let fields = [("revision", newest.into()), (REVIEWED, seen.into()), (CHANGED_BY, changed_by.into())];
    error.extra.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    error
}

/// A file that Python could run.
pub fn code(path: &str) -> String {
    format!(
        "The file {path:?} is code, which Python could run on the workers. Configurations hold settings only: remove it, or \
         start the server with --allow-code and the workers that may run it too."
    )
}
