//! Problems of teams.

use axum::http::StatusCode;

use super::{ApiError, Sentence, escaped};
use crate::service::error::ServiceError;

/// An error of teams; any other one is unexpected here.
pub fn team_problem(error: &ServiceError) -> ApiError {
    let (status, sentence) = match error {
        ServiceError::TeamNotFound(name) => (StatusCode::NOT_FOUND, Sentence::TeamNotFound { name: escaped(name) }),
        ServiceError::TeamExists(name) => (StatusCode::CONFLICT, Sentence::NameTakenTeam { name: escaped(name) }),
        ServiceError::NotTeamMember(team) => (StatusCode::FORBIDDEN, Sentence::NotTeamMember { team: escaped(team) }),
        ServiceError::UserNameNotFound(name) => (StatusCode::NOT_FOUND, Sentence::UserNotFound { id: escaped(name) }),
        _ => (StatusCode::CONFLICT, Sentence::DefaultTeam),
    };
    ApiError::new(status, sentence)
}
