//! The audit trail: one entry for each change, chained so that editing, inserting and removing are found.

pub mod flood;
pub mod verify;

use super::time::Timestamp;

/// The words of the trail, each with what it says.
macro_rules! actions {
    ($(#[doc = $about:literal] $name:ident => $word:literal,)+) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $(#[doc = $about] $name,)+
        }

        impl Action {
            /// All that can happen.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The word in the trail.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// What the word says, as a sentence.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$name => $about.trim_ascii(),)+
                }
            }
        }
    };
}

actions! {
    /// An admin made a worker.
    WorkerCreated => "worker.created",
    /// An agent registered.
    WorkerRegistered => "worker.registered",
    /// A worker listens.
    WorkerOnline => "worker.online",
    /// A worker's stream ended.
    WorkerConnecting => "worker.connecting",
    /// A worker said goodbye, or was silent for too long; the detail's `cause` says which.
    WorkerOffline => "worker.offline",
    /// A person wants a worker to drain.
    WorkerDrained => "worker.drained",
    /// A person took that back.
    WorkerResumed => "worker.resumed",
    /// An ephemeral worker's job ended.
    WorkerSpent => "worker.spent",
    /// An older agent runs a job that it does not hold, or none any more.
    WorkerAstray => "worker.astray",
    /// A worker's agent puts GPUs into quarantine, or lets some out; the detail says which, and why.
    WorkerGpus => "worker.gpus",
    /// A worker's agent says that its host is fit for no new job (the detail's `unfit` says why), or that it is fit again.
    WorkerFitness => "worker.fitness",
    /// An admin gave a worker a new token.
    WorkerTokenRotated => "worker.token_rotated",
    /// An admin changed a worker's name, type, labels or networks, or settled its alarm.
    WorkerEdited => "worker.edited",
    /// An agent came with a token that another one is using.
    WorkerTokenInUse => "worker.token_in_use",
    /// An agent could not register: its token opens nothing, is spent, or what it sent makes no sense.
    WorkerRegistrationRefused => "worker.registration_refused",
    /// An ephemeral worker that had gone was removed.
    WorkerRemoved => "worker.removed",
    /// An admin removed a worker.
    WorkerDeleted => "worker.deleted",
    /// A person submitted a job.
    JobSubmitted => "job.submitted",
    /// A person made a job more or less urgent.
    JobPrioritised => "job.prioritised",
    /// An attempt was offered to a worker.
    JobOffered => "job.offered",
    /// An offer was not answered in time, or was taken back: its worker drains, or is gone.
    JobOfferExpired => "job.offer_expired",
    /// A worker took an offer.
    JobStarting => "job.starting",
    /// A trainer runs.
    JobRunning => "job.running",
    /// An exclusive job waits longer, because its lost attempt was heard of and may still train.
    JobKeptBack => "job.kept_back",
    /// An attempt was lost; the job waits again.
    JobRequeued => "job.requeued",
    /// A person cancelled a job that runs.
    JobCancelling => "job.cancelling",
    /// A job was cancelled.
    JobCancelled => "job.cancelled",
    /// A job ended well.
    JobCompleted => "job.completed",
    /// A job failed.
    JobFailed => "job.failed",
    /// A configuration came, new or changed.
    ConfigStored => "config.stored",
    /// A configuration was removed.
    ConfigDeleted => "config.deleted",
    /// A setup code was exchanged for the first admin.
    SetupCompleted => "access.setup_completed",
    /// An admin token came from the environment.
    TokenBootstrapped => "access.token_bootstrapped",
    /// Somebody logged in.
    LoggedIn => "access.logged_in",
    /// Somebody gave their password once more, for what takes that.
    SessionProved => "access.session_proved",
    /// Somebody logged out.
    LoggedOut => "access.logged_out",
    /// A browser was logged out from elsewhere.
    SessionEnded => "access.session_ended",
    /// Somebody was added.
    UserCreated => "access.user_created",
    /// Somebody's role was changed, or whether they are let in.
    UserEdited => "access.user_edited",
    /// Somebody changed their password.
    PasswordChanged => "access.password_changed",
    /// An admin gave somebody another password; each session that ended and each API token that was revoked has its own entry.
    PasswordReset => "access.password_reset",
    /// A person set up a second factor; the detail says which: `totp`, or `passkey` with its name.
    FactorAdded => "access.factor_added",
    /// A person's second factor was removed; the detail says which, or `all` if an admin removed it.
    FactorRemoved => "access.factor_removed",
    /// A person replaced their recovery codes.
    RecoveryCodesRenewed => "access.recovery_codes_renewed",
    /// A person logged in with a recovery code; the detail says how many are left.
    RecoveryCodeUsed => "access.recovery_code_used",
    /// Somebody made an API token.
    TokenCreated => "access.token_created",
    /// An API token was revoked, or had expired and made room for a new one.
    TokenRevoked => "access.token_revoked",
    /// Somebody could not log in.
    LoginRefused => "access.login_refused",
    /// Somebody asked for what they may not have.
    AccessDenied => "access.denied",
    /// A secret for jobs was set.
    SecretSet => "secret.set",
    /// A secret for jobs was removed.
    SecretRemoved => "secret.removed",
    /// An attempt was given secrets.
    SecretsGiven => "secret.given",
    /// The newest entry of this chain was signed.
    AuditCheckpoint => "audit.checkpoint",
    /// The oldest entries of a chain were removed, because they were kept for long enough.
    AuditExpired => "audit.expired",
    /// Ended jobs, their logs or the files that they made were removed, because they were kept for long enough.
    RetentionSwept => "retention.swept",
}

/// One entry, before it has its place in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// Who: `admin`, `worker:w_…`, `system`, `unknown`.
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

impl Entry {
    /// The same as every database can keep it. PostgreSQL has no place for NUL characters in texts, and what is hashed
    /// must be what is kept.
    #[must_use]
    pub fn storable(self) -> Self {
        let plain = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
        Self {
            actor: plain(self.actor),
            target: plain(self.target),
            detail: plain(self.detail),
            request_id: self.request_id.map(plain),
            ..self
        }
    }

    /// The entry in its place: which chain, its number from 1, and the hash of the one before it, in hex (empty for the
    /// first).
    pub fn placed<'a>(&'a self, chain: &'a str, seq: i64, previous: &'a str) -> Record<'a> {
        Record {
            chain,
            seq,
            previous,
            at: self.at,
            actor: &self.actor,
            action: self.action.as_str(),
            target: &self.target,
            detail: &self.detail,
            request_id: self.request_id.as_deref(),
        }
    }
}

/// An entry in its place, as it is kept. It may have been tampered with, so every word is possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Which chain: one for each server process.
    pub chain: &'a str,
    /// Its number in the chain, from 1.
    pub seq: i64,
    /// The hash of the entry before it, in hex; empty for the first.
    pub previous: &'a str,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: &'a str,
    /// What, as a word.
    pub action: &'a str,
    /// To what.
    pub target: &'a str,
    /// Particulars, as JSON text.
    pub detail: &'a str,
    /// The request it came with, if any.
    pub request_id: Option<&'a str>,
}

impl Record<'_> {
    /// The bytes that an entry's hash is taken of: every field, each after its length, so that no two entries read
    /// alike. What is absent has a length that no text has.
    pub fn canonical(&self) -> Vec<u8> {
        let fields = [
            Some(self.chain),
            Some(&self.seq.to_string()),
            Some(self.previous),
            Some(&self.at.0.to_string()),
            Some(self.actor),
            Some(self.action),
            Some(self.target),
            Some(self.detail),
            self.request_id,
        ];
        let mut bytes = Vec::with_capacity(512);
        for field in fields {
            bytes.extend(field.map_or(u64::MAX, |text| text.len() as u64).to_be_bytes());
            bytes.extend(field.unwrap_or_default().as_bytes());
        }
        bytes
    }
}

/// How many of a chain's oldest entries have been kept for long enough: those from before a moment, up to the first
/// that is not.
pub fn expired(oldest: impl IntoIterator<Item = Timestamp>, before: Timestamp) -> usize {
    oldest.into_iter().take_while(|at| *at < before).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            at: Timestamp(1),
            actor: "admin".to_owned(),
            action: Action::WorkerCreated,
            target: "w_1".to_owned(),
            detail: "{}".to_owned(),
            request_id: Some("r".to_owned()),
        }
    }

    #[test]
    fn every_field_counts_and_none_runs_into_the_next() {
        let (entry, other) = (entry(), |change: fn(&mut Entry)| {
            let mut entry = entry();
            change(&mut entry);
            entry.placed("c", 1, "p").canonical()
        });
        let changed = [
            entry.placed("d", 1, "p").canonical(),
            entry.placed("c", 2, "p").canonical(),
            entry.placed("c", 1, "q").canonical(),
            other(|entry| entry.at = Timestamp(2)),
            other(|entry| entry.actor = "adminw".to_owned()),
            other(|entry| entry.action = Action::WorkerDeleted),
            other(|entry| entry.target = "w_2".to_owned()),
            other(|entry| entry.detail = "[]".to_owned()),
            other(|entry| entry.request_id = None),
            other(|entry| entry.request_id = Some(String::new())),
            other(|entry| (entry.target, entry.detail) = ("w_1{".to_owned(), "}".to_owned())),
        ];
        let original = entry.placed("c", 1, "p").canonical();
        assert!(changed.iter().all(|bytes| *bytes != original));
        assert_ne!(changed[8], changed[9], "no request id is not an empty one");
    }

    #[test]
    fn words_are_used_once_and_have_a_sentence() {
        let words: std::collections::BTreeSet<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(words.len(), Action::ALL.len());
        assert!(Action::ALL.iter().all(|action| action.about().ends_with('.') && !action.about().starts_with(' ')));
    }

    #[test]
    fn nothing_is_hashed_that_a_database_cannot_keep() {
        let odd = Entry {
            actor: "a\0".to_owned(),
            target: "t\0".to_owned(),
            detail: "d\0".to_owned(),
            request_id: Some("r\0".to_owned()),
            ..entry()
        };
        let kept = odd.storable();
        let texts = [&kept.actor, &kept.target, &kept.detail, kept.request_id.as_ref().expect("it has one")];
        assert!(texts.iter().all(|text| text.ends_with('\u{fffd}') && !text.contains('\0')));
        assert_eq!(entry().storable(), entry());
    }

    #[test]
    fn only_the_beginning_of_a_chain_expires() {
        let expired = |times: &[i64]| expired(times.iter().map(|at| Timestamp(*at)), Timestamp(10));
        assert_eq!((expired(&[]), expired(&[1, 9, 10, 3]), expired(&[11, 2]), expired(&[1, 2])), (0, 2, 0, 2));
    }
}
