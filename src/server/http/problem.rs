//! Where refusals become status codes and sentences; nowhere else.

mod access;
pub mod codes;
mod configs;
mod invalid;
mod json_words;
mod misread;
mod secrets;
mod turned_away;

use app::domain::job;
use app::domain::worker;
use app::protocol::problem::Problem;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::request::current_id;
use crate::service::refusal::Refusal;
use crate::store::StoreError;

/// An answer that is a problem document.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    detail: String,
    pub(super) extra: Map<String, Value>,
}

impl ApiError {
    /// A problem of this status, with a stable code and a sentence.
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), extra: Map::new() }
    }

    /// A body over the route's limit.
    pub fn body_too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            "The body is larger than this route takes. Send less at once.",
        )
    }

    /// A body that did not arrive.
    pub fn broken_body(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "broken_body", format!("The body did not arrive: {why}."))
    }

    /// A body that is not the JSON that was expected.
    pub fn invalid_json(path: &str, error: &serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", json_words::in_words(path, error))
    }

    /// A query string that is not what the route takes.
    pub fn invalid_query(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", format!("The query string is not usable: {why}."))
    }

    /// A job token for something else.
    pub fn other_attempt() -> Self {
        Self::new(StatusCode::FORBIDDEN, "other_attempt", "This job token belongs to another job or attempt.")
    }

    /// An agent that has job tokens used its session.
    pub fn job_token_required() -> Self {
        let detail = "This takes the token of the attempt, which its offer has, as X-Upload-Token.";
        Self::new(StatusCode::FORBIDDEN, "job_token_required", detail)
    }

    /// An id in the path or query that is none.
    pub fn bad_id(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no {what} of this id."))
    }

    /// Nobody is known to be asking.
    pub fn not_authenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "not_authenticated",
            "Send an API token as `Authorization: Bearer …` or `X-API-Key: …`, or log in with a browser. To make a token: on \
             the account page, or on the server's host with `simpletuner auth tokens create NAME --user YOU`. To try the \
             server alone without accounts: `simpletuner server --single-user`.",
        )
    }

    /// A worker's token that opens nothing.
    pub fn worker_token_refused() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_refused",
            "Invalid token: it may have been rotated, or its worker deleted. Create a worker, or rotate its token, and use the new one.",
        )
    }

    /// A worker's route without a worker's token.
    pub fn worker_token_missing() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "worker_token_missing",
            "There is no `X-Worker-Token` header: send the worker's token in it. Check whether a proxy in between drops the header.",
        )
    }

    /// More workers listen than one server holds.
    pub fn too_many_streams() -> Self {
        unavailable(
            "too_many_streams",
            "As many workers listen here as this server holds. Try again, or add a server; GET /api/workers/next works without a stream.",
        )
    }

    /// A part of a file that begins behind its end.
    pub fn range_not_satisfiable(size: u64) -> Self {
        let detail = format!("The file has {size} bytes, and what was asked for begins behind them.");
        let extra = Map::from_iter([("size".to_owned(), size.into())]);
        Self { extra, ..Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail) }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether it is the caller's doing, and not a failure of ours.
    pub fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// By what a request is to say who is asking.
    fn scheme(code: &str) -> &'static str {
        match code {
            "worker_token_missing" | "worker_token_refused" | "worker_token_expired" | "worker_token_spent" => {
                "X-Worker-Token"
            }
            _ => "Bearer",
        }
    }

    /// The document itself.
    pub fn problem(&self) -> Problem {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let mut problem = Problem::new(self.status.as_u16(), title, self.code, self.detail.clone());
        problem.request_id = current_id();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        problem.with = self.extra.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        problem
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut document = serde_json::to_value(self.problem()).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.extend(self.extra);
        }
        let wait = document.get(turned_away::RETRY_AFTER).and_then(Value::as_i64);
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
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(Self::scheme(self.code)));
        }
        response
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        use StatusCode as S;
        match refusal {
            Refusal::NoId(what) => Self::bad_id(what),
            Refusal::NoWorker(id) => Self::new(S::NOT_FOUND, "worker_not_found", format!("There is no worker {id}.")),
            Refusal::NoJob(id) => Self::new(S::NOT_FOUND, "job_not_found", format!("There is no job {id}.")),
            Refusal::NoConfig(name) => Self::new(
                S::NOT_FOUND,
                "config_not_found",
                format!(
                    "There is no configuration {name:?}. GET /api/configs lists them; PUT /api/configs/NAME adds one."
                ),
            ),
            Refusal::NoArtifact(path) => {
                Self::new(S::NOT_FOUND, "artifact_not_found", format!("This job has no file {path:?}."))
            }
            Refusal::NoAttempt(number) => {
                Self::new(S::NOT_FOUND, "attempt_not_found", format!("This job has no attempt {number}."))
            }
            Refusal::KeyReused(key) => Self::new(
                S::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                format!("The Idempotency-Key {key:?} came with another submit before. Use a new key for a new job."),
            ),
            Refusal::Changed => Self::new(
                S::PRECONDITION_FAILED,
                "precondition_failed",
                "It is not as you last saw it: somebody has changed it since. Look again, and repeat if it is still wanted.",
            ),
            Refusal::NameTaken(name) => Self::new(
                S::CONFLICT,
                "name_taken",
                format!("A worker named {name:?} exists. Choose another name, or delete that worker first."),
            ),
            Refusal::Invalid(invalid) => invalid::input(&invalid),
            Refusal::Job(refused) => job_refused(&refused),
            Refusal::Worker(refused) => worker_refused(refused),
            Refusal::LogGap { durable } => {
                let detail = format!("Bytes are missing before this piece. Send the log from offset {durable}.");
                let mut error = Self::new(S::CONFLICT, "log_gap", detail);
                error.extra.insert("durable".to_owned(), durable.into());
                error
            }
            Refusal::UploadGap { received } => {
                let detail = format!("Bytes are missing before this piece. Send the file from offset {received}.");
                let mut error = Self::new(S::CONFLICT, "upload_gap", detail);
                error.extra.insert("received".to_owned(), received.into());
                error
            }
            Refusal::CheckpointIncomplete { path } => {
                let detail = format!(
                    "{path:?} of this checkpoint did not arrive as it is described. Send it, and say so again."
                );
                let mut error = Self::new(S::CONFLICT, "checkpoint_incomplete", detail);
                error.extra.insert("path".to_owned(), path.into());
                error
            }
            Refusal::TooMany { kind, wait, .. } => turned_away::too_many(kind, wait),
            Refusal::Nobody => Self::not_authenticated(),
            Refusal::WorkerKey(closed, _) => turned_away::worker_key_refused(closed),
            Refusal::WrongPassword
            | Refusal::WrongToken
            | Refusal::Factor(_)
            | Refusal::Denied(_)
            | Refusal::ProofNeeded
            | Refusal::NoUser(_)
            | Refusal::NoToken(_)
            | Refusal::NoSession(_)
            | Refusal::PersonThere(_)
            | Refusal::TokenThere(_)
            | Refusal::LastAdmin
            | Refusal::NoAccounts
            | Refusal::NoPerson => access::refused(&refusal),
            changed @ (Refusal::ConfigNotYours { .. } | Refusal::ConfigChanged { .. }) => configs::refused(changed),
            Refusal::NoSecret(name) => secrets::not_found(&name),
            Refusal::SecretGone(name) => secrets::gone(&name),
            Refusal::SecretUnreadable(name, locked) => secrets::unreadable(&name, &locked),
            Refusal::Vault(locked) => secrets::no_vault(&locked),
            Refusal::Upload { what, too_large, kept } => {
                let status = if too_large { S::PAYLOAD_TOO_LARGE } else { S::BAD_REQUEST };
                let left = if kept == 0 {
                    "Nothing was kept of it.".to_owned()
                } else {
                    format!("The first {kept} bytes of it are kept: send what follows them.")
                };
                Self::new(status, "upload_refused", format!("The file was not stored: {what}. {left}"))
            }
            Refusal::DiskFull { free, floor } => turned_away::disk_full(free, floor),
            Refusal::DiskFullToRun { free, floor } => turned_away::disk_full_to_run(free, floor),
            Refusal::OverLimit(limit) => turned_away::over_limit(limit),
            Refusal::Files(why) => {
                tracing::error!(error = %why, "the disk failed");
                unavailable(
                    "files_unavailable",
                    "The server's disk did not take or give the file. Try again; if it stays so, look at the server's log and its free space.",
                )
            }
            Refusal::Store(error) => store_failed(&error),
        }
    }
}

fn unavailable(code: &'static str, detail: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
}

fn store_failed(error: &StoreError) -> ApiError {
    match error {
        StoreError::Conflict => ApiError::new(
            StatusCode::CONFLICT,
            "changed_meanwhile",
            "Somebody else changed this at the same time. Look again, and repeat if it is still wanted.",
        ),
        StoreError::Refused | StoreError::Unavailable(_) => {
            tracing::error!(%error, "the database failed");
            unavailable(
                "database_unavailable",
                "The database does not answer. Nothing was changed; try again in a moment.",
            )
        }
        StoreError::Inconsistent { .. } => {
            tracing::error!(%error, "a row makes no sense");
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "inconsistent_row",
                "A row of the database makes no sense; the server's log names it.",
            )
        }
    }
}

fn job_refused(refused: &job::Refused) -> ApiError {
    let (code, detail) = match refused {
        job::Refused::Ended => ("job_ended", "The job has ended; nothing changes it any more.".to_owned()),
        job::Refused::OldAttempt { current } => (
            "old_attempt",
            format!("The job was given to somebody else: attempt {current} is the current one. Stop this attempt."),
        ),
        job::Refused::NotYours => ("not_your_attempt", "This worker does not hold that attempt. Stop it.".to_owned()),
        job::Refused::NotEnded => {
            ("job_not_ended", "The job has not ended. Cancel it first, or wait for its end.".to_owned())
        }
        job::Refused::NotQueued => ("job_not_queued", "The job is not waiting.".to_owned()),
    };
    ApiError::new(StatusCode::CONFLICT, code, detail)
}

fn worker_refused(refused: worker::Refused) -> ApiError {
    let (code, detail) = match refused {
        worker::Refused::Connected => (
            "worker_connected",
            "The worker is connected. Stop its agent first; only workers that are offline can be deleted.",
        ),
        worker::Refused::Spent => {
            return ApiError::new(
                StatusCode::UNAUTHORIZED,
                "worker_token_spent",
                "This ephemeral worker has run its job, and its token opens nothing any more. Create a new worker, or a persistent one.",
            );
        }
        worker::Refused::TokenInUse => (
            "token_in_use",
            "Another agent, on another host or with another work directory, uses this token and is alive. Give each host a worker and a token of its own; if that agent is gone for good, this one is let in when it has not been heard of for the heartbeat timeout.",
        ),
        worker::Refused::Older => {
            return ApiError::new(
                StatusCode::FORBIDDEN,
                "older_agent_refused",
                "This worker does not allow agents of the older protocol. Install simpletuner-worker of this release, or allow older agents on the worker's page.",
            );
        }
        worker::Refused::NotRegistered => ("not_registered", "The worker is not registered here. Register first."),
    };
    ApiError::new(StatusCode::CONFLICT, code, detail)
}

/// A path below `/api` that is none.
pub fn no_such_route(path: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", format!("There is nothing at {path:?}."))
}

/// A route that does not know the method.
pub fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "This route does not know that method.")
}

/// A form of another site.
pub fn cross_site() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "cross_site_request",
        "The request comes from another site's page and was not carried out.",
    )
}

/// A name that this server does not answer to.
pub fn unknown_host() -> ApiError {
    ApiError::new(
        StatusCode::MISDIRECTED_REQUEST,
        "unknown_host",
        "A server in single-user mode answers to localhost and loopback addresses only.",
    )
}

/// A request that names two hosts.
pub fn several_hosts() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "several_hosts", "The request has more than one `Host` header. Send one.")
}

/// A defect of ours.
pub fn panicked() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_error",
        "The server failed at this request; its log says where. Please report it.",
    )
}
