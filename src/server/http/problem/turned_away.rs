//! Problems of who is not let in, or not now.

use app::domain::time::Millis;
use app::domain::worker::credential::Closed;
use axum::http::StatusCode;

use super::ApiError;
use crate::service::rates::TooMany;

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
    };
    let detail = format!("{what}. Try again in {seconds} s.");
    let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
    error.extra.insert(RETRY_AFTER.to_owned(), seconds.into());
    error
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

/// A worker's token that does not open.
pub fn worker_key_refused(closed: Closed) -> ApiError {
    match closed {
        Closed::Unknown => ApiError::worker_token_refused(),
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
