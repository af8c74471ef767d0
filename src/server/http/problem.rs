//! Maps errors to status codes and problem documents. This is the only place that does.

mod access;
pub mod codes;
mod configs;
mod invalid;
mod json_error;
mod query_parse;
mod secrets;
mod transitions;
mod unauthorized;

use app::protocol::problem::{FieldError, Problem};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::http::edge::request::current_id;
use crate::service::error::ServiceError;
use crate::store::StoreError;

#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    detail: String,
    pub(super) extra: Map<String, Value>,
    errors: Vec<FieldError>,
}

impl ApiError {
    /// Creates a problem with a status, a stable code and a detail text.
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), extra: Map::new(), errors: Vec::new() }
    }

    /// The body exceeds the route's limit.
    pub fn body_too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "The body is larger than this route allows. Send smaller requests.",
        )
    }

    /// The body did not arrive completely.
    pub fn body_interrupted(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "incomplete_body", format!("The body did not arrive: {why}."))
    }

    /// The body is not the expected JSON.
    pub fn invalid_json(path: &str, error: &serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", json_error::describe(path, error))
    }

    /// The query string is invalid.
    pub fn invalid_query(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", format!("Invalid query string: {why}."))
    }

    /// The job token belongs to another attempt.
    pub fn token_of_other_attempt() -> Self {
        Self::new(StatusCode::FORBIDDEN, "other_attempt", "This job token belongs to another job or attempt.")
    }

    /// An agent used its session where it has job tokens.
    pub fn job_token_required() -> Self {
        let detail = "This requires the token of the attempt, from its offer, as X-Upload-Token.";
        Self::new(StatusCode::FORBIDDEN, "job_token_required", detail)
    }

    /// An id in the path or query is invalid.
    pub fn invalid_id(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("Invalid {what} ID."))
    }

    /// The request is not authenticated.
    pub fn not_authenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "not_authenticated",
            "Send an API token as `Authorization: Bearer …` or `X-API-Key: …`, or sign in with a browser. To create a token: on \
             the account page, or on the server's host with `simpletuner auth tokens create NAME --user YOU`. To try the \
             server alone without accounts: `simpletuner server --single-user`.",
        )
    }

    /// The worker token is invalid.
    pub fn worker_token_invalid() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_invalid",
            "Invalid token: it may have been rotated, or its worker deleted. Create a worker, or rotate its token, and use the new one.",
        )
    }

    /// The worker token is missing.
    pub fn worker_token_missing() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_missing",
            "The `X-Worker-Token` header is missing: send the worker token in it. Check whether a proxy drops the header.",
        )
    }

    /// The limit of open worker streams is reached.
    pub fn too_many_streams() -> Self {
        service_unavailable(
            "too_many_streams",
            "This server has reached its limit of connected workers. Try again, or add a server; GET /api/workers/next works without a stream.",
        )
    }

    /// The requested range begins after the end of the file.
    pub fn range_not_satisfiable(size: u64) -> Self {
        let detail = format!("The file has {size} bytes, and the requested range starts after its end.");
        let extra = Map::from_iter([("size".to_owned(), size.into())]);
        Self { extra, ..Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail) }
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns whether the caller has caused the error, and not the server.
    pub fn is_client_error(&self) -> bool {
        self.status.is_client_error()
    }

    /// Returns the authentication scheme for `WWW-Authenticate`.
    fn auth_scheme(code: &str) -> &'static str {
        match code {
            "worker_token_missing" | "worker_token_invalid" | "worker_token_expired" | "worker_retired" => {
                "X-Worker-Token"
            }
            _ => "Bearer",
        }
    }

    pub fn to_problem(&self) -> Problem {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let mut problem = Problem::new(self.status.as_u16(), title, self.code, self.detail.clone());
        problem.request_id = current_id();
        problem.errors.clone_from(&self.errors);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        problem.params = self.extra.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        problem
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut document = serde_json::to_value(self.to_problem()).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.extend(self.extra);
        }
        let wait = document.get(unauthorized::RETRY_AFTER).and_then(Value::as_i64);
        let mut response = (self.status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if let Some(seconds) = wait {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        } else if self.status == StatusCode::INSUFFICIENT_STORAGE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(Self::auth_scheme(self.code)));
        }
        response
    }
}

impl From<ServiceError> for ApiError {
    fn from(service_error: ServiceError) -> Self {
        use StatusCode as S;
        match service_error {
            ServiceError::InvalidId(what) => Self::invalid_id(what),
            ServiceError::WorkerNotFound(id) => {
                Self::new(S::NOT_FOUND, "worker_not_found", format!("Worker {id} not found."))
            }
            ServiceError::JobNotFound(id) => Self::new(S::NOT_FOUND, "job_not_found", format!("Job {id} not found.")),
            ServiceError::ConfigNotFound(name, near) => {
                Self::new(S::NOT_FOUND, "config_not_found", configs::not_found_text(&name, &near))
            }
            ServiceError::ArtifactNotFound(path) => {
                Self::new(S::NOT_FOUND, "artifact_not_found", format!("This job has no file {path:?}."))
            }
            ServiceError::AttemptNotFound(number) => {
                Self::new(S::NOT_FOUND, "attempt_not_found", format!("This job has no attempt {number}."))
            }
            ServiceError::IdempotencyKeyReused(key) => Self::new(
                S::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                format!("The Idempotency-Key {key:?} was used with a different request. Use a new key for a new job."),
            ),
            ServiceError::PreconditionFailed => Self::new(
                S::PRECONDITION_FAILED,
                "precondition_failed",
                "This was changed since you loaded it. Reload and try again.",
            ),
            ServiceError::NameTaken(name) => Self::new(
                S::CONFLICT,
                "name_taken",
                format!("A worker named {name:?} exists. Choose another name, or delete that worker first."),
            ),
            ServiceError::Invalid(invalid) => invalid::invalid_input(&invalid),
            ServiceError::InvalidFields(wrong) => invalid::invalid_fields(&wrong),
            ServiceError::JobTransition(refused) => transitions::job_problem(&refused),
            ServiceError::WorkerTransition(refused) => transitions::worker_problem(refused),
            ServiceError::LogGap { durable } => {
                let detail = format!("Bytes are missing before this chunk. Send the log from offset {durable}.");
                let mut error = Self::new(S::CONFLICT, "log_gap", detail);
                error.extra.insert("durable".to_owned(), durable.into());
                error
            }
            ServiceError::UploadGap { received } => {
                let detail = format!("Bytes are missing before this chunk. Send the file from offset {received}.");
                let mut error = Self::new(S::CONFLICT, "upload_gap", detail);
                error.extra.insert("received".to_owned(), received.into());
                error
            }
            ServiceError::CheckpointIncomplete { path } => {
                let detail = format!(
                    "{path:?} of this checkpoint did not arrive as described. Upload it, then complete the checkpoint again."
                );
                let mut error = Self::new(S::CONFLICT, "checkpoint_incomplete", detail);
                error.extra.insert("path".to_owned(), path.into());
                error
            }
            ServiceError::RateLimited { kind, wait, .. } => unauthorized::too_many_requests(kind, wait),
            ServiceError::NotAuthenticated => Self::not_authenticated(),
            ServiceError::WorkerTokenRejected(closed, _) => unauthorized::worker_token_problem(closed),
            ServiceError::WrongPassword
            | ServiceError::WrongToken
            | ServiceError::Factor(_)
            | ServiceError::PermissionDenied(_)
            | ServiceError::RecentAuthRequired
            | ServiceError::UserNotFound(_)
            | ServiceError::TokenNotFound(_)
            | ServiceError::SessionNotFound(_)
            | ServiceError::UserExists(_)
            | ServiceError::TokenExists(_)
            | ServiceError::LastAdmin
            | ServiceError::NoAccounts
            | ServiceError::NoAccount => access::access_problem(&service_error),
            changed @ (ServiceError::NotConfigOwner { .. } | ServiceError::ConfigChanged { .. }) => {
                configs::config_problem(changed)
            }
            ServiceError::SecretNotFound(name) => secrets::secret_not_found(&name),
            ServiceError::SecretRemoved(name) => secrets::secret_removed(&name),
            ServiceError::SecretUnreadable(name, locked) => secrets::secret_unreadable(&name, &locked),
            ServiceError::Vault(locked) => secrets::secret_key_unavailable(&locked),
            ServiceError::Upload { message: what, too_large, kept } => {
                let status = if too_large { S::PAYLOAD_TOO_LARGE } else { S::BAD_REQUEST };
                let left = if kept == 0 {
                    "Nothing of it was stored.".to_owned()
                } else {
                    format!("The first {kept} bytes are stored: continue after them.")
                };
                Self::new(status, "upload_refused", format!("The file was not stored: {what}. {left}"))
            }
            ServiceError::DiskFull { free, floor } => unauthorized::disk_full(free, floor),
            ServiceError::DiskFullForRunning { free, floor } => unauthorized::disk_full_for_running(free, floor),
            ServiceError::LimitReached(limit) => unauthorized::limit_reached(limit),
            ServiceError::FilesUnavailable(why) => {
                tracing::error!(error = %why, "files: disk error");
                service_unavailable(
                    "files_unavailable",
                    "The server cannot read or write the file on its disk. Try again; if the error persists, check the server's log and free disk space.",
                )
            }
            ServiceError::Store(error) => store_problem(&error),
        }
    }
}

fn service_unavailable(code: &'static str, detail: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
}

fn store_problem(error: &StoreError) -> ApiError {
    match error {
        StoreError::Conflict => ApiError::new(
            StatusCode::CONFLICT,
            "concurrent_change",
            "This was changed by someone else at the same time. Reload and try again.",
        ),
        StoreError::Refused | StoreError::Unavailable(_) => {
            tracing::error!(%error, "database error");
            service_unavailable(
                "database_unavailable",
                "The database is unavailable. Nothing was changed; try again later.",
            )
        }
        StoreError::CorruptRow { .. } => {
            tracing::error!(%error, "corrupt database row");
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "inconsistent_row",
                "A row of the database is corrupt; the server's log names it.",
            )
        }
    }
}

/// There is no such path below `/api`.
pub fn no_such_route(path: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", format!("{path:?} not found."))
}

/// The route does not support the method.
pub fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This route does not support the method.")
}

/// The form was sent by another site.
pub fn cross_site() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "cross_site_request", "Cross-site request blocked.")
}

/// The server does not serve this host name.
pub fn unknown_host() -> ApiError {
    ApiError::new(
        StatusCode::MISDIRECTED_REQUEST,
        "unknown_host",
        "A server in single-user mode responds to localhost and loopback addresses only.",
    )
}

/// The request has several `Host` headers.
pub fn multiple_hosts() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "multiple_hosts", "The request has more than one `Host` header. Send one.")
}

/// The handler panicked.
pub fn panicked() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_error",
        "Internal error; the server's log has the details. Please report it.",
    )
}
