//! Problems of authentication and limits.

use app::domain::time::Millis;
use app::domain::worker::WorkerTransitionError;
use app::domain::worker::credential::TokenRejection;
use axum::http::StatusCode;

use super::ApiError;
use crate::service::access::rate_limits::RateLimitKind;
use crate::service::error::ResourceLimit;

/// The name of the parameter with the number of seconds to wait.
pub const RETRY_AFTER: &str = "retry_after_seconds";

/// Too many requests.
pub fn too_many_requests(kind: RateLimitKind, wait: Millis) -> ApiError {
    let seconds = (wait.0 + 999) / 1_000;
    let what = match kind {
        RateLimitKind::Caller => "Too many requests with this token or session",
        RateLimitKind::Unauthenticated => "Too many requests from this network without authentication",
        RateLimitKind::WrongTokens => "Too many invalid tokens from this network",
        RateLimitKind::WrongPasswords => "Too many wrong passwords or codes",
        RateLimitKind::WorkerChanges => "This worker registers or connects too often (--worker-change-limit)",
    };
    let detail = format!("{what}. Try again in {seconds} s.");
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
    error.extra.insert(RETRY_AFTER.to_owned(), seconds.into());
    error
}

/// Too many open event streams.
fn too_many_event_streams(limit: usize) -> ApiError {
    let detail = format!(
        "You have {limit} open event streams, the limit per user \
         (--max-event-streams-per-user). Close pages or stop scripts that follow changes or logs."
    );
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_event_streams", detail)
}

/// Not enough free disk space for new jobs.
pub fn disk_full(free: u64, floor: u64) -> ApiError {
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!(
        "The server's disk is almost full: {} MiB are free, {} MiB are kept free (--disk-min-free). Running jobs continue; \
         new ones are rejected until an admin frees disk space.",
        mib(free),
        mib(floor)
    );
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail)
}

/// Not enough free disk space for running jobs.
pub fn disk_full_for_running(free: u64, floor: u64) -> ApiError {
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!(
        "The server's disk is full: {} MiB are free, {} MiB are kept for the database (--disk-min-free-running). Logs, \
         metric points and files are accepted again when an admin has freed disk space; send them again then.",
        mib(free),
        mib(floor)
    );
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail)
}

/// A limit of this user is reached.
pub fn limit_reached(limit: ResourceLimit) -> ApiError {
    let detail = match limit {
        ResourceLimit::EventStreams { max: most } => return too_many_event_streams(most),
        ResourceLimit::WaitingJobs { max: most } => format!(
            "You have {most} queued jobs, the limit per user (--max-waiting-jobs-per-user). Cancel \
             some, or submit again when some have started."
        ),
        ResourceLimit::ApiTokens { max: most } => format!(
            "This user has {most} API tokens, the limit per user (--max-api-tokens-per-user). Revoke \
             some, or ask an admin to raise that limit."
        ),
        ResourceLimit::ConfigsOfUser { max: most } => format!(
            "The revisions of configurations that you have stored would have more than {} MiB \
             (--max-config-size-per-user). Ask an admin to raise that limit.",
            most >> 20
        ),
        ResourceLimit::Configs { max: most } => format!(
            "All revisions of configurations would have more than {} MiB (--max-config-size). Ask an admin to raise \
             that limit.",
            most >> 20
        ),
        ResourceLimit::FilesOfJob { max: most } => format!(
            "The files of this job would have more than {} MiB (--max-file-size-per-job). Keep fewer checkpoints, or \
             ask an admin to raise that limit.",
            most >> 20
        ),
        ResourceLimit::FilesOfUser { max: most } => format!(
            "The files of all jobs of this user would have more than {} MiB (--max-file-size-per-user). Ask an admin \
             to raise that limit, or to keep files for a shorter time.",
            most >> 20
        ),
    };
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "limit_reached", detail)
}

/// The worker token was rejected.
pub fn worker_token_problem(rejection: TokenRejection) -> ApiError {
    match rejection {
        TokenRejection::Unknown => ApiError::worker_token_invalid(),
        TokenRejection::SessionEnded => super::transitions::worker_problem(WorkerTransitionError::NotRegistered),
        TokenRejection::Expired => ApiError::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_expired",
            "This worker's token has expired. Rotate it on the worker's page, and start the agent with the new one.",
        ),
        TokenRejection::NetworkNotAllowed => ApiError::new(
            StatusCode::FORBIDDEN,
            "network_not_allowed",
            "This worker's token is not allowed from this network. Start the agent in an allowed one, or add the network to the worker's `allowed_networks`.",
        ),
    }
}

impl ApiError {
    /// The body arrived too slowly.
    pub fn body_too_slow() -> Self {
        let detail = "The body arrived too slowly: the minimum is 1 KiB/s. Send it again on a faster connection.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
    }
}
