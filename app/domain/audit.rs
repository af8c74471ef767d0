//! The audit trail: one entry for each change, chained so that editing, inserting and removing are found.

use super::time::Timestamp;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An admin made a worker.
    WorkerCreated,
    /// An agent registered.
    WorkerRegistered,
    /// A worker listens.
    WorkerOnline,
    /// A worker's stream ended.
    WorkerConnecting,
    /// A worker said goodbye.
    WorkerOffline,
    /// A person wants a worker to drain.
    WorkerDrained,
    /// A person took that back.
    WorkerResumed,
    /// An ephemeral worker's job ended.
    WorkerSpent,
    /// An admin gave a worker a new token.
    WorkerTokenRotated,
    /// An admin changed a worker's name, type or labels.
    WorkerEdited,
    /// An agent came with a token that another one is using.
    WorkerTokenInUse,
    /// An ephemeral worker that had gone was removed.
    WorkerRemoved,
    /// An admin removed a worker.
    WorkerDeleted,
    /// A person submitted a job.
    JobSubmitted,
    /// A person made a job more or less urgent.
    JobPrioritised,
    /// An attempt was offered to a worker.
    JobOffered,
    /// An offer was not answered in time.
    JobOfferExpired,
    /// A worker took an offer.
    JobStarting,
    /// A trainer runs.
    JobRunning,
    /// An attempt was lost; the job waits again.
    JobRequeued,
    /// A person cancelled a job that runs.
    JobCancelling,
    /// A job was cancelled.
    JobCancelled,
    /// A job ended well.
    JobCompleted,
    /// A job failed.
    JobFailed,
    /// A configuration came, new or changed.
    ConfigStored,
    /// A configuration was removed.
    ConfigDeleted,
    /// A setup code was exchanged for the first admin.
    SetupCompleted,
    /// An admin token came from the environment.
    TokenBootstrapped,
    /// Somebody logged in.
    LoggedIn,
    /// Somebody logged out.
    LoggedOut,
    /// A session was ended from elsewhere.
    SessionEnded,
    /// Somebody was added.
    UserCreated,
    /// Somebody's role was changed, or whether they are let in.
    UserEdited,
    /// Somebody changed their password.
    PasswordChanged,
    /// An admin gave somebody another password.
    PasswordReset,
    /// Somebody made an API token.
    TokenCreated,
    /// An API token was taken away.
    TokenRevoked,
}

impl Action {
    /// The word in the trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WorkerCreated => "worker.created",
            Self::WorkerRegistered => "worker.registered",
            Self::WorkerOnline => "worker.online",
            Self::WorkerConnecting => "worker.connecting",
            Self::WorkerOffline => "worker.offline",
            Self::WorkerDrained => "worker.drained",
            Self::WorkerResumed => "worker.resumed",
            Self::WorkerSpent => "worker.spent",
            Self::WorkerTokenRotated => "worker.token_rotated",
            Self::WorkerEdited => "worker.edited",
            Self::WorkerTokenInUse => "worker.token_in_use",
            Self::WorkerRemoved => "worker.removed",
            Self::WorkerDeleted => "worker.deleted",
            Self::JobSubmitted => "job.submitted",
            Self::JobPrioritised => "job.prioritised",
            Self::JobOffered => "job.offered",
            Self::JobOfferExpired => "job.offer_expired",
            Self::JobStarting => "job.starting",
            Self::JobRunning => "job.running",
            Self::JobRequeued => "job.requeued",
            Self::JobCancelling => "job.cancelling",
            Self::JobCancelled => "job.cancelled",
            Self::JobCompleted => "job.completed",
            Self::JobFailed => "job.failed",
            Self::ConfigStored => "config.stored",
            Self::ConfigDeleted => "config.deleted",
            Self::SetupCompleted => "access.setup_completed",
            Self::TokenBootstrapped => "access.token_bootstrapped",
            Self::LoggedIn => "access.logged_in",
            Self::LoggedOut => "access.logged_out",
            Self::SessionEnded => "access.session_ended",
            Self::UserCreated => "access.user_created",
            Self::UserEdited => "access.user_edited",
            Self::PasswordChanged => "access.password_changed",
            Self::PasswordReset => "access.password_reset",
            Self::TokenCreated => "access.token_created",
            Self::TokenRevoked => "access.token_revoked",
        }
    }
}

/// One entry, before it has its place in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// Who: `admin`, `worker:w_…`, `system`.
    pub actor: String,
    /// What.
    pub action: Action,
    /// To what: an id or a name.
    pub target: String,
    /// Particulars, as JSON text.
    pub detail: String,
    /// The request it came with, if any.
    pub request_id: Option<String>,
}

/// The place of an entry in its chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// Which chain: one for each server process.
    pub chain: &'a str,
    /// Its number in the chain, from 1.
    pub seq: i64,
    /// The hash of the entry before it, in hex; empty for the first.
    pub previous: &'a str,
}

/// The bytes that an entry's hash is taken of: every field, each with its length, so that no two entries read alike.
pub fn canonical(link: &Link<'_>, entry: &Entry) -> Vec<u8> {
    let fields = [
        link.chain,
        &link.seq.to_string(),
        link.previous,
        &entry.at.0.to_string(),
        &entry.actor,
        entry.action.as_str(),
        &entry.target,
        &entry.detail,
        entry.request_id.as_deref().unwrap_or_default(),
    ];
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend((field.len() as u64).to_be_bytes());
        bytes.extend(field.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_counts_and_none_runs_into_the_next() {
        let link = Link { chain: "c", seq: 1, previous: "p" };
        let entry = Entry {
            at: Timestamp(1),
            actor: "admin".to_owned(),
            action: Action::WorkerCreated,
            target: "w_1".to_owned(),
            detail: "{}".to_owned(),
            request_id: Some("r".to_owned()),
        };
        let changed = [
            canonical(&Link { chain: "d", ..link.clone() }, &entry),
            canonical(&Link { seq: 2, ..link.clone() }, &entry),
            canonical(&Link { previous: "q", ..link.clone() }, &entry),
            canonical(&link, &Entry { at: Timestamp(2), ..entry.clone() }),
            canonical(&link, &Entry { actor: "adminw".to_owned(), ..entry.clone() }),
            canonical(&link, &Entry { action: Action::WorkerDeleted, ..entry.clone() }),
            canonical(&link, &Entry { target: "w_2".to_owned(), ..entry.clone() }),
            canonical(&link, &Entry { detail: "[]".to_owned(), ..entry.clone() }),
            canonical(&link, &Entry { request_id: None, ..entry.clone() }),
        ];
        let original = canonical(&link, &entry);
        assert!(changed.iter().all(|bytes| *bytes != original));
        let shifted = Entry { target: "w_1{".to_owned(), detail: "}".to_owned(), ..entry };
        assert_ne!(canonical(&link, &shifted), original);
    }
}
