//! Why a use case said no: a code with its parameters. Sentences are made at the edge.

use app::domain::access::Permission;
use app::domain::ids::{JobId, SessionId, TokenId, UserId, WorkerId};
use app::domain::labels::BadLabels;
use app::domain::passkey::NoPasskeys;
use app::domain::password::Weakness;
use app::domain::roster::query::Misread;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::Closed;
use app::domain::{job, worker};

use super::rates::TooMany;
use crate::store::StoreError;
use crate::vault::Locked;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// What was named is no id of one of these.
    NoId(&'static str),
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
    /// It is not as the caller says to have seen it (`If-Match`).
    Changed,
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
    /// Bytes of a file are missing before this piece.
    UploadGap {
        /// How many bytes are on disk.
        received: u64,
    },
    /// A file of a checkpoint is not here as it was described.
    CheckpointIncomplete {
        /// Which.
        path: String,
    },
    /// The token or code opens nothing.
    WrongToken,
    /// This worker's token opens nothing now, or not from there.
    WorkerKey(Closed, WorkerId),
    /// The name and password do not belong together, or nobody of that name is let in.
    WrongPassword,
    /// A second factor does not allow it.
    Factor(FactorRefusal),
    /// That was asked too often; after so long it may be asked again.
    TooMany {
        /// What was.
        kind: TooMany,
        /// How long to wait.
        wait: Millis,
        /// Who asked, as far as it is known.
        who: String,
    },
    /// Nobody is known to be asking.
    Nobody,
    /// It takes this permission.
    Denied(Permission),
    /// It takes the password once more.
    ProofNeeded,
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
    /// The configuration is somebody else's.
    ConfigNotYours {
        /// Its name.
        name: String,
        /// Whose it is, if it is known.
        owner: Option<String>,
    },
    /// Others have changed the configuration since whoever submits has seen it.
    ConfigChanged {
        /// Its name.
        name: String,
        /// The revision that they have seen.
        seen: u32,
        /// The newest one.
        newest: u32,
        /// Who stored the newest change of another, if it is known.
        changed_by: Option<String>,
    },
    /// There is no such secret.
    NoSecret(String),
    /// A secret that the job names was removed.
    SecretGone(String),
    /// A secret of this name is there, and cannot be opened.
    SecretUnreadable(String, Locked),
    /// No secret can be kept.
    Vault(Locked),
    /// Whoever asks is on the server's host, and nobody with an account.
    NoPerson,
    /// An upload did not arrive as announced.
    Upload {
        /// What happened.
        what: String,
        /// Whether it was too large, and not broken.
        too_large: bool,
        /// How many bytes of it are kept, so that whoever sent it goes on behind them.
        kept: u64,
    },
    /// Less is free on the disk than is kept free, in bytes.
    DiskFull {
        /// How much is free.
        free: u64,
        /// How much is to be.
        floor: u64,
    },
    /// Less is free on the disk than what runs may use, in bytes.
    DiskFullToRun {
        /// How much is free.
        free: u64,
        /// How much is to be.
        floor: u64,
    },
    /// Somebody has as much of something as they may.
    OverLimit(Limit),
    /// The disk failed.
    Files(String),
    /// The database failed, or somebody else was quicker.
    Store(StoreError),
}

/// Why something about a second factor is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorRefusal {
    /// The code is not right, or was used before.
    WrongCode,
    /// No authenticator app is being set up.
    NotBegun,
    /// There is one already.
    Exists,
    /// There is none.
    Missing,
    /// It takes a session that was opened with a password.
    NoPasswordSession,
    /// The password was right, and the second factor is wanted too.
    Wanted,
    /// There can be no passkeys at the address by which the caller came.
    NoPasskeysHere(NoPasskeys),
    /// No passkey is asked for, or it took too long.
    NothingAsked,
    /// What the passkey signed is not what was asked for, or it is not the person's.
    WrongPasskey,
    /// The passkey has counted back: there may be a copy of it.
    PasskeyCopied,
    /// Somebody has this passkey already.
    PasskeyThere,
    /// The person has no such passkey.
    NoPasskey,
}

/// What somebody has as much of as they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A person's jobs that wait.
    WaitingJobs {
        /// How many that are.
        most: usize,
    },
    /// A person's API tokens.
    ApiTokens {
        /// How many that are.
        most: usize,
    },
    /// A person's event streams that are open.
    EventStreams {
        /// How many that are.
        most: usize,
    },
    /// The revisions of configurations that a person has stored.
    ConfigsOfPerson {
        /// How many bytes those have.
        most: u64,
    },
    /// All revisions of configurations.
    Configs {
        /// How many bytes those have.
        most: u64,
    },
    /// The files of a job.
    FilesOfJob {
        /// How many bytes those have.
        most: u64,
    },
    /// The files of all jobs of a person.
    FilesOfPerson {
        /// How many bytes those have.
        most: u64,
    },
}

/// What is wrong with an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Invalid {
    /// A name that is empty, too long or has control characters.
    Name(String),
    /// The name of a secret.
    SecretName(String),
    /// Labels.
    Labels(BadLabels),
    /// A network that is none.
    Network(String),
    /// A status word that is none.
    Status(String),
    /// A password that is too short, or easy to guess.
    Password(Weakness),
    /// A number out of its range.
    Range {
        /// Which field.
        field: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// A regular expression that is none, or too large; what is wrong with it.
    Pattern(String),
    /// A pattern that would take too much time.
    PatternTooCostly,
    /// A question for workers that has a word which is not understood.
    Search(Misread),
    /// A path that leads elsewhere.
    Path(String),
    /// A configuration's file that Python could run.
    Code(String),
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

/// A moment that a query names, if it names one.
pub fn moment(field: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Invalid> {
    let allowed = "a moment in UTC, like 2024-01-15T10:30:00Z";
    text.map(|text| Timestamp::parse_rfc3339(text).ok_or(Invalid::Range { field, allowed })).transpose()
}

impl Refusal {
    /// The same, where so much of an upload is kept.
    pub fn keeping(self, kept: u64) -> Self {
        if let Self::Upload { what, too_large, .. } = self { Self::Upload { what, too_large, kept } } else { self }
    }

    /// The worker whose token it is that does not open.
    pub fn worker(&self) -> Option<&WorkerId> {
        if let Self::WorkerKey(_, worker) = self { Some(worker) } else { None }
    }
}

impl From<FactorRefusal> for Refusal {
    fn from(refusal: FactorRefusal) -> Self {
        Self::Factor(refusal)
    }
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

impl From<Locked> for Refusal {
    fn from(locked: Locked) -> Self {
        Self::Vault(locked)
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
