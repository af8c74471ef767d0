//! Why a use case said no: a code with its parameters. Sentences are made at the edge.

use app::domain::access::Permission;
use app::domain::ids::{JobId, SessionId, TokenId, UserId, WorkerId};
use app::domain::labels::BadLabels;
use app::domain::{job, worker};

use crate::store::StoreError;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// There is no such worker.
    NoWorker(WorkerId),
    /// There is no such job.
    NoJob(JobId),
    /// There is no such configuration.
    NoConfig(String),
    /// There is no such file.
    NoArtifact(String),
    /// The attempt number is none of this job's.
    NoAttempt(u32),
    /// This `Idempotency-Key` came with another submit.
    KeyReused(String),
    /// A worker of this name exists.
    NameTaken(String),
    /// An input is not usable.
    Invalid(Invalid),
    /// The job's life does not allow it.
    Job(job::Refused),
    /// The worker's life does not allow it.
    Worker(worker::Refused),
    /// Bytes are missing before this piece of a log.
    LogGap {
        /// How many bytes are on disk.
        durable: u64,
    },
    /// The token or code opens nothing.
    WrongToken,
    /// The name and password do not belong together, or nobody of that name is let in.
    WrongPassword,
    /// It takes this permission.
    Denied(Permission),
    /// There is nobody of this id.
    NoUser(UserId),
    /// There is no such API token.
    NoToken(TokenId),
    /// There is no such session.
    NoSession(SessionId),
    /// Somebody of this name is there.
    PersonThere(String),
    /// Its owner has a token of this name.
    TokenThere(String),
    /// Nobody else could do what an admin does.
    LastAdmin,
    /// The server has no accounts.
    NoAccounts,
    /// An upload did not arrive as announced.
    Upload {
        /// What happened.
        what: String,
        /// Whether it was too large, and not broken.
        too_large: bool,
    },
    /// Less is free on the disk than is kept free, in bytes.
    DiskFull {
        /// How much is free.
        free: u64,
        /// How much is to be.
        floor: u64,
    },
    /// The disk failed.
    Files(String),
    /// The database failed, or somebody else was quicker.
    Store(StoreError),
}

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Invalid {
    /// A name that is empty, too long or has control characters.
    Name(String),
    /// Labels.
    Labels(BadLabels),
    /// A status word that is none.
    Status(String),
    /// A number out of its range.
    Range {
        /// Which field.
        field: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// A path that leads elsewhere.
    Path(String),
    /// A configuration without `config.json`.
    NoConfigJson,
    /// A configuration file that is no JSON.
    BrokenJson {
        /// Which file.
        file: String,
        /// What the parser said.
        error: String,
    },
    /// Something is too large or too many.
    TooMuch {
        /// What.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
    },
    /// The worker's id in the body is not the token's.
    OtherWorker,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<job::Refused> for Refusal {
    fn from(refused: job::Refused) -> Self {
        Self::Job(refused)
    }
}

impl From<worker::Refused> for Refusal {
    fn from(refused: worker::Refused) -> Self {
        Self::Worker(refused)
    }
}

impl From<BadLabels> for Refusal {
    fn from(bad: BadLabels) -> Self {
        Self::Invalid(Invalid::Labels(bad))
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Files(error.to_string())
    }
}
