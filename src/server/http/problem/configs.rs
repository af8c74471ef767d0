//! Problems of configurations.

use axum::http::StatusCode;

use super::{ApiError, Sentence, escaped};
use crate::service::error::ServiceError;

/// The field that confirms the reviewed revision.
const REVIEWED_REVISION: &str = "reviewed_revision";
const CHANGED_BY: &str = "changed_by";

/// Returns the sentence with similar names, if there are any.
pub fn not_found(name: &str, similar: &[String]) -> Sentence {
    let (name, similar) = (escaped(name), similar.join(", "));
    if similar.is_empty() {
        Sentence::ConfigNotFoundUnknown { name }
    } else {
        Sentence::ConfigNotFoundSimilar { name, similar }
    }
}

/// Returns the problem of a configuration error.
pub fn config_problem(error: ServiceError) -> ApiError {
    match error {
        ServiceError::NotConfigOwner { name, owner } => not_owner(&name, owner),
        ServiceError::ConfigChanged { name, seen, newest, changed_by } => {
            config_changed(&name, seen, newest, changed_by)
        }
        other => other.into(),
    }
}

/// The configuration belongs to another user.
fn not_owner(name: &str, owner: Option<String>) -> ApiError {
    let name = escaped(name);
    let sentence = match owner.clone() {
        Some(owner) => Sentence::ConfigNotYoursOwner { name, owner },
        None => Sentence::ConfigNotYoursNoOwner { name },
    };
    ApiError::new(StatusCode::FORBIDDEN, sentence).with("owner", owner)
}

/// Other users have changed the configuration since the caller reviewed it.
fn config_changed(name: &str, reviewed: u32, newest: u32, changed_by: Option<String>) -> ApiError {
    let (name, reviewed_text, newest_revision_text) = (escaped(name), reviewed.to_string(), newest.to_string());
    let sentence = match changed_by.clone() {
        Some(user) => Sentence::ConfigChangedByUser { user, name, seen: reviewed_text, newest: newest_revision_text },
        None => Sentence::ConfigChangedByUnknown { name, seen: reviewed_text, newest: newest_revision_text },
    };
    let error = ApiError::new(StatusCode::CONFLICT, sentence);
    error.with("revision", newest).with(REVIEWED_REVISION, reviewed).with(CHANGED_BY, changed_by)
}
