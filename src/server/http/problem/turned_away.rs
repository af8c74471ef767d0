//! Problems of who is not let in, or not now.

use app::domain::time::Millis;
use app::domain::worker::Refused;
use app::domain::worker::credential::Closed;
use axum::http::StatusCode;

use super::ApiError;
use crate::service::rates::TooMany;
use crate::service::refusal::Limit;

/// So many seconds, for a header and for a reader.
pub const RETRY_AFTER: &str = "retry_after_seconds";

/// Somebody asks too often.
pub fn too_many(kind: TooMany, wait: Millis) -> ApiError {
    let seconds = (wait.0 + 999) / 1_000;
    let what = match kind {
        TooMany::OfCaller => "Too many requests with this token or session",
        TooMany::OfStrangers => "Too many requests from this network without a token or a login",
        TooMany::WrongTokens => "Too many tokens from this network that open nothing",
        TooMany::WrongPasswords => "Too many wrong passwords or codes",
        TooMany::WorkerChanges => "This worker registers or connects too often (--worker-change-limit)",
    };
    let detail = format!("{what}. Try again in {seconds} s.");
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
    error.extra.insert(RETRY_AFTER.to_owned(), seconds.into());
    error
}

/// Somebody follows too much at once.
fn too_many_event_streams(most: usize) -> ApiError {
    let detail = format!(
        "You have {most} event streams open, which is as many as one person may \
         (--max-event-streams-per-user). Close pages or stop scripts that follow changes or logs."
    );
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_event_streams", detail)
}

/// There is no room for anything new.
pub fn disk_full(free: u64, floor: u64) -> ApiError {
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!(
        "The server's disk is almost full: {} MiB are free, {} MiB are kept free (--disk-min-free). What runs goes on; \
         nothing new is begun until an admin has made room.",
        mib(free),
        mib(floor)
    );
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail)
}

/// There is no room for more of what runs.
pub fn disk_full_to_run(free: u64, floor: u64) -> ApiError {
    let mib = |bytes: u64| bytes >> 20;
    let detail = format!(
        "The server's disk is full: {} MiB are free, {} MiB are kept for the database (--disk-min-free-running). Logs, \
         points and files are taken again when an admin has made room; send them again then.",
        mib(free),
        mib(floor)
    );
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail)
}

/// Somebody has as much as they may.
pub fn over_limit(limit: Limit) -> ApiError {
    let detail = match limit {
        Limit::EventStreams { most } => return too_many_event_streams(most),
        Limit::WaitingJobs { most } => format!(
            "You have {most} jobs that wait, which is as many as one person may (--max-waiting-jobs-per-user). Cancel \
             some, or submit again when some have started."
        ),
        Limit::ApiTokens { most } => format!(
            "This person has {most} API tokens, which is as many as one person may (--max-api-tokens-per-user). Revoke \
             some, or ask an admin to raise that limit."
        ),
        Limit::ConfigsOfPerson { most } => format!(
            "The revisions of configurations that you have stored would have more than {} MiB \
             (--max-config-size-per-user). Ask an admin to raise that limit.",
            most >> 20
        ),
        Limit::Configs { most } => format!(
            "All revisions of configurations would have more than {} MiB (--max-config-size). Ask an admin to raise \
             that limit.",
            most >> 20
        ),
        Limit::FilesOfJob { most } => format!(
            "The files of this job would have more than {} MiB (--max-file-size-per-job). Keep fewer checkpoints, or \
             ask an admin to raise that limit.",
            most >> 20
        ),
        Limit::FilesOfPerson { most } => format!(
            "The files of all jobs of this person would have more than {} MiB (--max-file-size-per-user). Ask an admin \
             to raise that limit, or to keep files for a shorter time.",
            most >> 20
        ),
    };
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "limit_reached", detail)
}

/// A worker's token that does not open.
pub fn worker_key_refused(closed: Closed) -> ApiError {
    match closed {
        Closed::Unknown => ApiError::worker_token_refused(),
        Closed::SessionOver => super::worker_refused(Refused::NotRegistered),
        Closed::Expired => ApiError::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_expired",
            "This worker's token has expired. Rotate it on the worker's page, and start the agent with the new one.",
        ),
        Closed::Elsewhere => ApiError::new(
            StatusCode::FORBIDDEN,
            "network_not_allowed",
            "This worker's token may not be used from this network. Start the agent in an allowed one, or add the network to the worker's `allowed_networks`.",
        ),
    }
}

impl ApiError {
    /// A body that did not get on.
    pub fn body_too_slow() -> Self {
        let detail =
            "The body came too slowly: it has to get on by a kibibyte a second. Send it again on a better connection.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
    }
}
