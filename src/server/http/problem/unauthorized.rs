//! Problems of authentication and limits.

use app::domain::time::Millis;
use app::domain::worker::WorkerTransitionError;
use app::domain::worker::credential::TokenRejection;
use axum::http::StatusCode;

use super::{ApiError, Sentence};
use crate::service::error::{RateLimitKind, ResourceLimit};

/// The name of the parameter with the number of seconds to wait.
pub const RETRY_AFTER: &str = "retry_after_seconds";

/// Too many agents register at the same time.
pub fn too_many_registrations(wait: Millis) -> ApiError {
    let seconds = wait_seconds(wait);
    let sentence = Sentence::TooManyRegistrations { seconds: seconds.to_string() };
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, sentence).with(RETRY_AFTER, seconds)
}

fn wait_seconds(wait: Millis) -> i64 {
    (wait.0 + 999) / 1_000
}

/// Too many requests.
pub fn too_many_requests(kind: RateLimitKind, wait: Millis) -> ApiError {
    let wait_seconds = wait_seconds(wait);
    let seconds = wait_seconds.to_string();
    let sentence = match kind {
        RateLimitKind::Caller => Sentence::TooManyRequestsCaller { seconds },
        RateLimitKind::Unauthenticated => Sentence::TooManyRequestsNetwork { seconds },
        RateLimitKind::WrongTokens => Sentence::TooManyRequestsTokens { seconds },
        RateLimitKind::WrongPasswords => Sentence::TooManyRequestsPasswords { seconds },
        RateLimitKind::WorkerChanges => Sentence::TooManyRequestsWorker { seconds },
    };
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, sentence).with(RETRY_AFTER, wait_seconds)
}

/// Not enough free disk space for new jobs.
pub fn disk_full(free: u64, floor: u64) -> ApiError {
    let sentence = Sentence::DiskFullNewJobs { free: mib(free), floor: mib(floor) };
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, sentence)
}

/// Not enough free disk space for running jobs.
pub fn disk_full_for_running(free: u64, floor: u64) -> ApiError {
    let sentence = Sentence::DiskFullRunningJobs { free: mib(free), floor: mib(floor) };
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, sentence)
}

/// A limit of this user is reached.
pub fn limit_reached(limit: ResourceLimit) -> ApiError {
    let sentence = match limit {
        ResourceLimit::EventStreams { max } => {
            let sentence = Sentence::TooManyEventStreams { max: max.to_string() };
            return ApiError::new(StatusCode::TOO_MANY_REQUESTS, sentence);
        }
        ResourceLimit::WaitingJobs { max } => Sentence::LimitReachedWaitingJobs { max: max.to_string() },
        ResourceLimit::WaitingJobsOfTeam { team, max } => {
            Sentence::LimitReachedWaitingJobsOfTeam { team, max: max.to_string() }
        }
        ResourceLimit::WaitingJobsInTeam { team, max } => {
            Sentence::LimitReachedWaitingJobsInTeam { team, max: max.to_string() }
        }
        ResourceLimit::ApiTokens { max } => Sentence::LimitReachedApiTokens { max: max.to_string() },
        ResourceLimit::ConfigsOfUser { max } => Sentence::LimitReachedConfigsOfUser { mib: mib(max) },
        ResourceLimit::Configs { max } => Sentence::LimitReachedConfigs { mib: mib(max) },
        ResourceLimit::FilesOfJob { max } => Sentence::LimitReachedFilesOfJob { mib: mib(max) },
        ResourceLimit::FilesOfUser { max } => Sentence::LimitReachedFilesOfUser { mib: mib(max) },
    };
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, sentence)
}

fn mib(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

/// The worker token was rejected.
pub fn worker_token_problem(rejection: TokenRejection) -> ApiError {
    match rejection {
        TokenRejection::Unknown => ApiError::worker_token_invalid(),
        TokenRejection::SessionEnded => super::transitions::worker_problem(WorkerTransitionError::NotRegistered),
        TokenRejection::Expired => ApiError::new(StatusCode::UNAUTHORIZED, Sentence::WorkerTokenExpired),
        TokenRejection::NetworkNotAllowed => ApiError::new(StatusCode::FORBIDDEN, Sentence::NetworkNotAllowed),
    }
}

impl ApiError {
    /// The body arrived too slowly.
    pub fn body_too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, Sentence::BodyTooSlow)
    }
}
