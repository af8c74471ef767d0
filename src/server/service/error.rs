//! Errors of use cases: a code with parameters. The edge turns them into sentences.

use std::borrow::Cow;

use app::domain::access::Permission;
use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::ids::{JobId, SessionId, TokenId, UserId, WorkerId};
use app::domain::labels::LabelsError;
use app::domain::passkey::PasskeyOriginError;
use app::domain::password::PasswordWeakness;
use app::domain::search_terms::QueryParseError;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::TokenRejection;
use app::domain::{job, worker};

use crate::store::StoreError;
use crate::vault::VaultError;

#[derive(Debug, Clone, PartialEq)]
pub enum ServiceError {
    /// Not a valid id of this kind.
    InvalidId(IdKind),
    WorkerNotFound(WorkerId),
    JobNotFound(JobId),
    ConfigNotFound(String, Vec<String>),
    ArtifactNotFound(String),
    /// The job has no files, or none of the requested kind.
    NoArtifacts,
    /// The job has no such attempt.
    AttemptNotFound(u32),
    /// This `Idempotency-Key` was used with another request.
    IdempotencyKeyReused(String),
    /// The resource is not as the caller has seen it (`If-Match`).
    PreconditionFailed,
    NameTaken(String),
    /// One invalid input.
    Invalid(InvalidInput),
    /// All invalid fields, in the order of the request.
    InvalidFields(Vec<InvalidField>),
    /// The job's state does not allow it.
    JobTransition(job::JobTransitionError),
    /// The worker's state does not allow it.
    WorkerTransition(worker::WorkerTransitionError),
    /// Bytes are missing before this chunk of a log.
    LogGap {
        /// The number of bytes on disk.
        durable: u64,
    },
    /// Bytes are missing before this chunk of a file.
    UploadGap {
        /// The number of bytes on disk.
        received: u64,
    },
    /// A file of a checkpoint was not uploaded as described.
    CheckpointIncomplete {
        path: String,
    },
    /// Invalid token or code.
    WrongToken,
    /// This worker's token is not valid, or not from this address.
    WorkerTokenRejected(TokenRejection, WorkerId),
    /// Wrong name or password, or a disabled user.
    WrongPassword,
    /// A second factor does not allow it.
    Factor(FactorError),
    /// Many agents register at the same time.
    TooManyRegistrations {
        /// The time until this agent's turn.
        wait: Millis,
    },
    /// Rate limit exceeded.
    RateLimited {
        kind: RateLimitKind,
        /// The time until the next try.
        wait: Millis,
        /// The caller, as far as known.
        caller: String,
    },
    NotAuthenticated,
    PermissionDenied(Permission),
    /// A recent password check is required.
    RecentAuthRequired,
    UserNotFound(UserId),
    TokenNotFound(TokenId),
    SessionNotFound(SessionId),
    /// A user of this name exists.
    UserExists(String),
    TokenExists(String),
    /// No other user could act as admin.
    LastAdmin,
    NoAccounts,
    /// The configuration belongs to another user.
    NotConfigOwner {
        name: String,
        /// `None` if unknown.
        owner: Option<String>,
    },
    /// Others have changed the configuration since the submitter saw it.
    ConfigChanged {
        name: String,
        /// The revision that the submitter has seen.
        seen: u32,
        /// The newest revision.
        newest: u32,
        /// Who stored another user's newest change, if known.
        changed_by: Option<String>,
    },
    SecretNotFound(String),
    /// The user sees no saved view of this name.
    ViewNotFound(String),
    TeamNotFound(String),
    TeamExists(String),
    /// The default team cannot be deleted.
    DefaultTeam,
    /// The caller may not submit for this team.
    NotTeamMember(String),
    /// There is no user of this name, or none in the team.
    UserNameNotFound(String),
    /// A secret that the job names was deleted.
    SecretRemoved(String),
    /// A stored secret of this name cannot be decrypted.
    SecretUnreadable(String, VaultError),
    /// Secrets cannot be stored.
    Vault(VaultError),
    /// The caller is on the server's host, without an account.
    NoAccount,
    /// An upload was not as announced.
    Upload {
        rejection: UploadRejection,
        /// The number of bytes that are stored, so that the client can resume after them.
        stored_bytes: u64,
    },
    /// Less disk space is free than new work requires, in bytes.
    DiskFull {
        free: u64,
        /// The required free space.
        floor: u64,
    },
    /// Less disk space is free than running work requires, in bytes.
    DiskFullForRunning {
        free: u64,
        /// The required free space.
        floor: u64,
    },
    /// A usage limit is reached.
    LimitReached(ResourceLimit),
    /// The disk has failed.
    FilesUnavailable(String),
    /// The database has failed, or another transaction was first.
    Store(StoreError),
}

/// What an ID identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    Job,
    Worker,
    User,
    Session,
    ApiToken,
}

/// Why an upload is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadRejection {
    /// More bytes than any file may have.
    TooLarge {
        limit: u64,
    },
    /// More bytes than this file was to have.
    MoreThanAnnounced {
        announced: u64,
    },
    Interrupted(String),
    /// The job's checkpoints are not to be uploaded.
    Checkpoint,
    /// The SHA-256 is not the announced one.
    DigestMismatch {
        announced: String,
        found: String,
    },
}

/// Errors of second factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorError {
    /// The code is wrong, or was used before.
    WrongCode,
    NoEnrollment,
    AlreadyExists,
    NotFound,
    /// Requires a session that was opened with a password.
    NoPasswordSession,
    /// The password is correct, and a second factor is required.
    Required,
    /// Passkeys do not work at the origin of the request.
    PasskeysUnavailable(PasskeyOriginError),
    /// No passkey challenge is open, or it has expired.
    PasskeyExpired,
    /// The signature is not for the challenge, or the passkey is not the user's.
    WrongPasskey,
    /// The passkey's counter went backwards: it may be copied.
    PasskeyCopied,
    /// The passkey is already registered.
    PasskeyExists,
    PasskeyNotFound,
}

/// Kinds of rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitKind {
    /// Requests of an authenticated caller.
    Caller,
    /// Unauthenticated requests of a network.
    Unauthenticated,
    /// Invalid tokens of a network.
    WrongTokens,
    /// Wrong passwords or codes of a network or for a name.
    WrongPasswords,
    /// Changes of a worker's own state.
    WorkerChanges,
}

impl RateLimitKind {
    pub const ALL: [Self; 5] =
        [Self::Caller, Self::Unauthenticated, Self::WrongTokens, Self::WrongPasswords, Self::WorkerChanges];

    /// The name in the audit log and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Unauthenticated => "unauthenticated",
            Self::WrongTokens => "wrong_tokens",
            Self::WrongPasswords => "wrong_passwords",
            Self::WorkerChanges => "worker_changes",
        }
    }
}

/// A usage limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceLimit {
    WaitingJobs {
        /// The maximum number of waiting jobs.
        max: usize,
    },
    WaitingJobsOfTeam {
        team: String,
        /// The maximum number of waiting jobs.
        max: u32,
    },
    /// Of a member of the team.
    WaitingJobsInTeam {
        team: String,
        /// The maximum number of waiting jobs.
        max: u32,
    },
    ApiTokens {
        /// The maximum number of API tokens.
        max: usize,
    },
    EventStreams {
        /// The maximum number of open event streams.
        max: usize,
    },
    /// Revisions of configurations stored by one user.
    ConfigsOfUser {
        /// In bytes.
        max: u64,
    },
    /// All revisions of configurations.
    Configs {
        /// In bytes.
        max: u64,
    },
    FilesOfJob {
        /// In bytes.
        max: u64,
    },
    FilesOfUser {
        /// In bytes.
        max: u64,
    },
}

/// Why an input is invalid.
#[derive(Debug, Clone, PartialEq)]
pub enum InvalidInput {
    Name(String),
    SecretName(String),
    Labels(LabelsError),
    /// Not a network in CIDR notation.
    Network(String),
    /// An unknown status.
    Status(String),
    Password(PasswordWeakness),
    /// A value that is not allowed.
    OutOfRange {
        field: &'static str,
        allowed: AllowedValues,
    },
    /// Not a regular expression, or too large; with the parser's message.
    Pattern(String),
    /// A pattern that would take too much time.
    PatternTooCostly,
    /// A search query with an invalid term.
    Search(QueryParseError),
    /// A path that leaves its directory.
    Path(String),
    Code(String),
    ConfigJsonMissing,
    /// A configuration file that is not JSON; with the parser's message.
    InvalidJson {
        file: String,
        error: String,
    },
    /// A configuration file whose JSON is not an object.
    NotAJsonObject {
        file: String,
    },
    /// Too large or too many.
    TooMuch {
        items: LimitedItems,
        limit: u64,
    },
    /// The worker's id in the body is not that of the token.
    OtherWorker,
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidField {
    pub field: Cow<'static, str>,
    /// Why it is invalid.
    pub invalid: InvalidInput,
}

impl InvalidField {
    /// Creates one for this field.
    pub fn new(field: impl Into<Cow<'static, str>>, invalid: impl Into<InvalidInput>) -> Self {
        Self { field: field.into(), invalid: invalid.into() }
    }

    pub fn out_of_range(field: &'static str, allowed: AllowedValues) -> Self {
        Self::new(field, InvalidInput::OutOfRange { field, allowed })
    }
}

/// Fails if any field is invalid.
pub fn require_valid(fields: Vec<InvalidField>) -> Result<(), ServiceError> {
    if fields.is_empty() { Ok(()) } else { Err(ServiceError::InvalidFields(fields)) }
}

/// Parses an optional time of a query.
pub fn parse_time(field: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, InvalidInput> {
    let invalid = InvalidInput::OutOfRange { field, allowed: AllowedValues::Moment };
    text.map(|text| Timestamp::parse_rfc3339(text).ok_or(invalid)).transpose()
}

impl ServiceError {
    pub fn with_stored_bytes(self, stored_bytes: u64) -> Self {
        if let Self::Upload { rejection, .. } = self { Self::Upload { rejection, stored_bytes } } else { self }
    }

    /// Removes the names of other configurations, for readers without `config.view`.
    pub fn without_config_names(self) -> Self {
        if let Self::ConfigNotFound(name, _) = self { Self::ConfigNotFound(name, Vec::new()) } else { self }
    }

    /// The worker whose token was rejected.
    pub fn worker_id(&self) -> Option<&WorkerId> {
        if let Self::WorkerTokenRejected(_, worker) = self { Some(worker) } else { None }
    }
}

impl From<FactorError> for ServiceError {
    fn from(error: FactorError) -> Self {
        Self::Factor(error)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<job::JobTransitionError> for ServiceError {
    fn from(error: job::JobTransitionError) -> Self {
        Self::JobTransition(error)
    }
}

impl From<worker::WorkerTransitionError> for ServiceError {
    fn from(error: worker::WorkerTransitionError) -> Self {
        Self::WorkerTransition(error)
    }
}

impl From<VaultError> for ServiceError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error)
    }
}

impl From<LabelsError> for ServiceError {
    fn from(error: LabelsError) -> Self {
        Self::Invalid(InvalidInput::Labels(error))
    }
}

impl From<LabelsError> for InvalidInput {
    fn from(error: LabelsError) -> Self {
        Self::Labels(error)
    }
}

impl From<InvalidInput> for ServiceError {
    fn from(error: InvalidInput) -> Self {
        Self::Invalid(error)
    }
}

impl From<std::io::Error> for ServiceError {
    fn from(error: std::io::Error) -> Self {
        Self::FilesUnavailable(error.to_string())
    }
}
