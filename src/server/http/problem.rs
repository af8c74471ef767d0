//! Maps errors to status codes and problem documents. This is the only place that does. The sentences are in
//! `app/locales`.

mod access;
pub mod codes;
mod configs;
mod invalid;
mod json_error;
mod query_parse;
mod secrets;
mod shares;
mod transitions;
mod unauthorized;

use app::protocol::problem::{FieldError, Problem};
use app::ui::prefs::Locale;
use app::ui::problem_sentence::ProblemSentence as Sentence;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::http::request_context::{current_id, current_locale};
use crate::service::error::{IdKind, ServiceError, UploadRejection};
use crate::store::StoreError;

/// The field with the size of a file of which no requested byte exists.
const FILE_SIZE: &str = "size";

#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    /// Its key is the problem's code. In a box, because most results can be such an error.
    sentence: Box<Sentence>,
    pub(super) extra: Map<String, Value>,
    /// The invalid fields, each with its own error.
    fields: Vec<(String, ApiError)>,
}

impl ApiError {
    /// Creates a problem with a status and a sentence.
    fn new(status: StatusCode, sentence: Sentence) -> Self {
        Self { status, sentence: Box::new(sentence), extra: Map::new(), fields: Vec::new() }
    }

    /// Adds a field to the document.
    #[must_use]
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// The body exceeds the route's limit.
    pub fn body_too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Sentence::BodyTooLarge)
    }

    /// The body did not arrive completely.
    pub fn body_interrupted(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Sentence::IncompleteBody { why: reason.to_owned() })
    }

    /// The body is not the expected JSON.
    pub fn invalid_json(path: &str, error: &serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, json_error::sentence(path, error))
    }

    /// The body is a list where an object is expected.
    pub fn list_for_object() -> Self {
        Self::new(StatusCode::BAD_REQUEST, Sentence::InvalidJsonList)
    }

    /// The query string is invalid.
    pub fn invalid_query(reason: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Sentence::InvalidQuery { why: reason.to_owned() })
    }

    /// The connection is not encrypted.
    pub fn tls_required() -> Self {
        Self::new(StatusCode::BAD_REQUEST, Sentence::TlsRequired)
    }

    /// The job token belongs to another attempt.
    pub fn token_of_other_attempt() -> Self {
        Self::new(StatusCode::FORBIDDEN, Sentence::OtherAttempt)
    }

    /// An agent used its session where it has job tokens.
    pub fn job_token_required() -> Self {
        Self::new(StatusCode::FORBIDDEN, Sentence::JobTokenRequired)
    }

    /// An id in the path or query is invalid.
    pub fn invalid_id(kind: IdKind) -> Self {
        let sentence = match kind {
            IdKind::Job => Sentence::NotFoundJob,
            IdKind::Worker => Sentence::NotFoundWorker,
            IdKind::User => Sentence::NotFoundUser,
            IdKind::Session => Sentence::NotFoundSession,
            IdKind::ApiToken => Sentence::NotFoundToken,
        };
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// A parameter of the path is not what the route expects.
    pub fn invalid_path_parameter() -> Self {
        Self::new(StatusCode::NOT_FOUND, Sentence::NotFoundPath)
    }

    /// The request is not authenticated.
    pub fn not_authenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Sentence::NotAuthenticated)
    }

    /// The worker token is invalid.
    pub fn worker_token_invalid() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Sentence::WorkerTokenInvalid)
    }

    /// The worker token is missing.
    pub fn worker_token_missing() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Sentence::WorkerTokenMissing)
    }

    /// The limit of open worker streams is reached.
    pub fn too_many_streams() -> Self {
        service_unavailable(Sentence::TooManyStreams)
    }

    /// The requested range begins after the end of the file.
    pub fn range_not_satisfiable(size: u64) -> Self {
        let sentence = Sentence::RangeNotSatisfiable { size: size.to_string() };
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, sentence).with(FILE_SIZE, size)
    }

    pub fn code(&self) -> &'static str {
        self.sentence.code()
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

    /// Returns the document in this language.
    pub fn to_problem(&self, locale: Locale) -> Problem {
        let title = self.status.canonical_reason().unwrap_or("Problem");
        let mut problem = Problem::new(self.status.as_u16(), title, self.code(), self.sentence.text(locale));
        problem.request_id = current_id();
        problem.errors = self.fields.iter().map(|(field, error)| error.to_field_error(field, locale)).collect();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        problem.params = self.extra.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        problem
    }

    fn to_field_error(&self, field: &str, locale: Locale) -> FieldError {
        let why = self.extra.get("why").and_then(Value::as_str).map(str::to_owned);
        let (field, code) = (field.to_owned(), self.code().to_owned());
        FieldError { field, code, detail: self.sentence.text(locale), why }
    }
}

/// In the language of the current request.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (code, locale) = (self.code(), current_locale());
        let mut document = serde_json::to_value(self.to_problem(locale)).unwrap_or_default();
        if let Value::Object(fields) = &mut document {
            fields.extend(self.extra);
        }
        let wait = document.get(unauthorized::RETRY_AFTER).and_then(Value::as_i64);
        let mut response = (self.status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if locale != Locale::default() {
            headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(locale.tag()));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if let Some(seconds) = wait {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        } else if self.status == StatusCode::INSUFFICIENT_STORAGE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        }
        let size = document.get(FILE_SIZE).filter(|_| self.status == StatusCode::RANGE_NOT_SATISFIABLE);
        if let Some(size) = size.and_then(|size| format!("bytes */{size}").parse().ok()) {
            headers.insert(header::CONTENT_RANGE, size);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(Self::auth_scheme(code)));
        }
        response
    }
}

impl From<ServiceError> for ApiError {
    fn from(service_error: ServiceError) -> Self {
        use StatusCode as S;
        match service_error {
            ServiceError::InvalidId(kind) => Self::invalid_id(kind),
            ServiceError::WorkerNotFound(id) => {
                Self::new(S::NOT_FOUND, Sentence::WorkerNotFound { id: id.to_string() })
            }
            ServiceError::JobNotFound(id) => Self::new(S::NOT_FOUND, Sentence::JobNotFound { id: id.to_string() }),
            ServiceError::ConfigNotFound(name, similar) => Self::new(S::NOT_FOUND, configs::not_found(&name, &similar)),
            ServiceError::ArtifactNotFound(path) => {
                Self::new(S::NOT_FOUND, Sentence::ArtifactNotFoundPath { path: escaped(&path) })
            }
            ServiceError::NoArtifacts => Self::new(S::NOT_FOUND, Sentence::ArtifactNotFoundAny),
            ServiceError::AttemptNotFound(number) => {
                Self::new(S::NOT_FOUND, Sentence::AttemptNotFound { attempt: number.to_string() })
            }
            ServiceError::IdempotencyKeyReused(key) => {
                Self::new(S::UNPROCESSABLE_ENTITY, Sentence::IdempotencyKeyReused { key: escaped(&key) })
            }
            ServiceError::PreconditionFailed => Self::new(S::PRECONDITION_FAILED, Sentence::PreconditionFailed),
            ServiceError::NameTaken(name) => Self::new(S::CONFLICT, Sentence::NameTakenWorker { name: escaped(&name) }),
            ServiceError::Invalid(invalid) => invalid::invalid_input(&invalid),
            ServiceError::InvalidFields(fields) => invalid::invalid_fields(&fields),
            ServiceError::JobTransition(error) => transitions::job_problem(&error),
            ServiceError::WorkerTransition(error) => transitions::worker_problem(error),
            ServiceError::LogGap { durable } => {
                let sentence = Sentence::LogGap { offset: durable.to_string() };
                Self::new(S::CONFLICT, sentence).with("durable", durable)
            }
            ServiceError::UploadGap { received } => {
                let sentence = Sentence::UploadGap { offset: received.to_string() };
                Self::new(S::CONFLICT, sentence).with("received", received)
            }
            ServiceError::CheckpointIncomplete { path } => {
                let sentence = Sentence::CheckpointIncomplete { path: escaped(&path) };
                Self::new(S::CONFLICT, sentence).with("path", path)
            }
            ServiceError::TooManyRegistrations { wait } => unauthorized::too_many_registrations(wait),
            ServiceError::RateLimited { kind, wait, .. } => unauthorized::too_many_requests(kind, wait),
            ServiceError::NotAuthenticated => Self::not_authenticated(),
            ServiceError::WorkerTokenRejected(rejection, _) => unauthorized::worker_token_problem(rejection),
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
            error @ (ServiceError::NotConfigOwner { .. } | ServiceError::ConfigChanged { .. }) => {
                configs::config_problem(error)
            }
            ServiceError::TeamNotFound(_)
            | ServiceError::TeamExists(_)
            | ServiceError::DefaultTeam
            | ServiceError::NotTeamMember(_)
            | ServiceError::UserNameNotFound(_) => shares::team_problem(&service_error),
            ServiceError::SecretNotFound(name) => secrets::secret_not_found(&name),
            ServiceError::ViewNotFound(name) => {
                Self::new(StatusCode::NOT_FOUND, Sentence::ViewNotFound { name: escaped(&name) })
            }
            ServiceError::SecretRemoved(name) => secrets::secret_removed(&name),
            ServiceError::SecretUnreadable(name, error) => secrets::secret_unreadable(&name, &error),
            ServiceError::Vault(error) => secrets::secret_key_unavailable(&error),
            ServiceError::Upload { rejection, stored_bytes } => upload_problem(rejection, stored_bytes),
            ServiceError::DiskFull { free, floor } => unauthorized::disk_full(free, floor),
            ServiceError::DiskFullForRunning { free, floor } => unauthorized::disk_full_for_running(free, floor),
            ServiceError::LimitReached(limit) => unauthorized::limit_reached(limit),
            ServiceError::FilesUnavailable(reason) => {
                tracing::error!(error = %reason, "files: disk error");
                service_unavailable(Sentence::FilesUnavailable)
            }
            ServiceError::Store(error) => store_problem(&error),
        }
    }
}

/// Escapes control characters in a text of a client.
fn escaped(text: &str) -> String {
    let quoted = format!("{text:?}");
    quoted[1..quoted.len() - 1].to_owned()
}

fn service_unavailable(sentence: Sentence) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
}

/// A file was not stored; of a chunk, the first bytes may be.
fn upload_problem(rejection: UploadRejection, stored_bytes: u64) -> ApiError {
    let is_too_large = matches!(rejection, UploadRejection::TooLarge { .. });
    let status = if is_too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
    let sentence = match (rejection, stored_bytes) {
        (UploadRejection::TooLarge { limit }, _) => Sentence::UploadRejectedSize { limit: limit.to_string() },
        (UploadRejection::Checkpoint, _) => Sentence::UploadRejectedCheckpoint,
        (UploadRejection::DigestMismatch { announced, found }, _) => {
            Sentence::UploadRejectedDigest { found, announced }
        }
        (UploadRejection::MoreThanAnnounced { announced }, 0) => {
            Sentence::UploadRejectedAnnouncement { announced: announced.to_string() }
        }
        (UploadRejection::MoreThanAnnounced { announced }, stored_bytes) => {
            let (announced, kept) = (announced.to_string(), stored_bytes.to_string());
            Sentence::UploadRejectedAnnouncementInPart { announced, kept }
        }
        (UploadRejection::Interrupted(reason), 0) => Sentence::UploadRejectedInterruption { why: reason },
        (UploadRejection::Interrupted(reason), stored_bytes) => {
            Sentence::UploadRejectedInterruptionInPart { why: reason, kept: stored_bytes.to_string() }
        }
    };
    ApiError::new(status, sentence)
}

fn store_problem(error: &StoreError) -> ApiError {
    match error {
        StoreError::Conflict => ApiError::new(StatusCode::CONFLICT, Sentence::ConcurrentChange),
        StoreError::Rejected | StoreError::Unavailable(_) => {
            tracing::error!(%error, "database error");
            service_unavailable(Sentence::DatabaseUnavailable)
        }
        StoreError::CorruptRow { .. } => {
            tracing::error!(%error, "corrupt database row");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Sentence::InconsistentRow)
        }
    }
}

/// There is no such path below `/api`.
pub fn no_such_route(path: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, Sentence::NoSuchRoute { path: escaped(path) })
}

/// The route does not support the method.
pub fn method_not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, Sentence::MethodNotAllowed)
}

/// The form was sent by another site.
pub fn cross_site() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, Sentence::CrossSiteRequest)
}

/// The server does not serve this host name.
pub fn unknown_host() -> ApiError {
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, Sentence::UnknownHost)
}

/// The request has several `Host` headers.
pub fn multiple_hosts() -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, Sentence::MultipleHosts)
}

/// The handler panicked.
pub fn panicked() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Sentence::InternalError)
}
