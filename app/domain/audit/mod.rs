//! The audit log: one entry for each change, in hash chains that reveal edited, inserted and removed entries.

pub mod rate_limit;
pub mod verify;

use super::time::Timestamp;
use crate::words::words;

/// The audit actions, each with its description.
macro_rules! actions {
    ($(#[doc = $about:literal] $name:ident => $word:literal,)+) => {
        words! {
            /// An audit action.
            AuditAction { $(#[doc = $about] $name = $word,)+ }
        }

        impl AuditAction {
            /// Returns the action's description.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => $about.trim_ascii(),)+
                }
            }
        }
    };
}

actions! {
    /// An admin created a worker.
    WorkerCreated => "worker.created",
    /// An agent registered.
    WorkerRegistered => "worker.registered",
    /// A worker connected.
    WorkerOnline => "worker.online",
    /// A worker's stream ended.
    WorkerConnecting => "worker.connecting",
    /// A worker disconnected, was silent for too long, or had its token rotated; the detail's `cause` says which.
    WorkerOffline => "worker.offline",
    /// A user drained a worker.
    WorkerDrained => "worker.drained",
    /// A user resumed a drained worker.
    WorkerResumed => "worker.resumed",
    /// An ephemeral worker was retired: its job ended.
    WorkerRetired => "worker.retired",
    /// An older agent runs a job that is not assigned to it, or no longer does.
    WorkerUnassignedRun => "worker.unassigned_run",
    /// A worker's agent quarantined or released GPUs; the detail says which, and why.
    WorkerGpus => "worker.gpus_changed",
    /// A worker's agent reported its host as unhealthy (the detail's `unhealthy_reason` says why), or as healthy again.
    WorkerHostHealth => "worker.health_changed",
    /// An admin rotated a worker's token.
    WorkerTokenRotated => "worker.token_rotated",
    /// An admin changed a worker's name, type, labels or networks, or dismissed its alert.
    WorkerEdited => "worker.updated",
    /// A second agent used a token that is already in use.
    WorkerTokenInUse => "worker.token_in_use",
    /// An agent could not register: its token is invalid, its worker is retired, or the request is invalid.
    WorkerRegistrationRejected => "worker.registration_rejected",
    /// The record of an offline ephemeral worker was removed.
    WorkerRemoved => "worker.removed",
    /// An admin deleted a worker.
    WorkerDeleted => "worker.deleted",
    /// A user submitted a job.
    JobSubmitted => "job.submitted",
    /// A user changed a job's priority.
    JobPrioritized => "job.priority_changed",
    /// An attempt was offered to a worker.
    JobOffered => "job.offered",
    /// An offer timed out, or was withdrawn because its worker drains or is offline.
    JobOfferExpired => "job.offer_expired",
    /// A worker accepted an offer.
    JobStarting => "job.starting",
    /// The trainer is running.
    JobRunning => "job.running",
    /// The fencing delay of an exclusive job was extended, because its lost attempt sent a request and may still train.
    JobHeld => "job.held",
    /// An attempt was lost; the job is queued again.
    JobRequeued => "job.requeued",
    /// A user cancelled a running job.
    JobCancelling => "job.cancelling",
    /// A job was cancelled.
    JobCancelled => "job.cancelled",
    /// A job completed.
    JobCompleted => "job.completed",
    /// A job failed.
    JobFailed => "job.failed",
    /// A configuration was created or changed.
    ConfigStored => "config.saved",
    /// A configuration was deleted.
    ConfigDeleted => "config.deleted",
    /// The setup code was used to create the first admin.
    SetupCompleted => "access.setup_completed",
    /// An admin token was created from the environment.
    TokenBootstrapped => "access.token_bootstrapped",
    /// A user signed in.
    LoggedIn => "access.logged_in",
    /// A user confirmed the password again for a protected action.
    SessionReauthenticated => "access.reauthenticated",
    /// A user signed out.
    LoggedOut => "access.logged_out",
    /// A browser session was ended from elsewhere.
    SessionEnded => "access.session_revoked",
    /// A user was added.
    UserCreated => "access.user_created",
    /// A user's role was changed, or the user was enabled or disabled.
    UserEdited => "access.user_updated",
    /// A user changed their password.
    PasswordChanged => "access.password_changed",
    /// An admin reset a user's password; each session that ended and each API token that was revoked has its own entry.
    PasswordReset => "access.password_reset",
    /// A user set up a second factor; the detail says which: `totp`, or `passkey` with its name.
    FactorAdded => "access.factor_added",
    /// A user's second factor was removed; the detail says which, or `all` if an admin removed it.
    FactorRemoved => "access.factor_removed",
    /// A user replaced their recovery codes.
    RecoveryCodesRenewed => "access.recovery_codes_renewed",
    /// A user signed in with a recovery code; the detail says how many are left.
    RecoveryCodeUsed => "access.recovery_code_used",
    /// A user created an API token.
    TokenCreated => "access.token_created",
    /// An API token was revoked, or had expired and was replaced.
    TokenRevoked => "access.token_revoked",
    /// A sign-in failed.
    LoginFailed => "access.login_failed",
    /// A request was not permitted.
    AccessDenied => "access.denied",
    /// A job secret was saved.
    SecretSet => "secret.saved",
    /// A job secret was deleted.
    SecretRemoved => "secret.deleted",
    /// An attempt received secrets.
    SecretsDelivered => "secret.delivered",
    /// The newest entry of this chain was signed.
    AuditCheckpoint => "audit.checkpoint",
    /// The oldest entries of a chain were deleted by retention.
    AuditExpired => "audit.expired",
    /// Ended jobs, their logs or their artifacts were deleted by retention.
    RetentionSwept => "retention.pruned",
}

/// An audit entry before it is added to a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The actor: `admin`, `worker:w_…`, `system`, `unknown`.
    pub actor: String,
    /// The action.
    pub action: AuditAction,
    /// The target: an ID or a name.
    pub target: String,
    /// Details, as JSON text.
    pub detail: String,
    /// The ID of the request that caused it, if any.
    pub request_id: Option<String>,
}

impl AuditEvent {
    /// Removes what a database cannot store: PostgreSQL allows no NUL characters in text, and the hash must match the
    /// stored text.
    #[must_use]
    pub fn sanitized(self) -> Self {
        let plain = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
        Self {
            actor: plain(self.actor),
            target: plain(self.target),
            detail: plain(self.detail),
            request_id: self.request_id.map(plain),
            ..self
        }
    }

    /// Returns the entry at its place: its chain, its sequence number from 1, and the hash of the previous entry, in
    /// hex (empty for the first).
    pub fn to_record<'a>(&'a self, chain: &'a str, seq: i64, previous: &'a str) -> AuditRecord<'a> {
        AuditRecord {
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

/// A stored audit entry. It may have been tampered with, so `action` can be any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord<'a> {
    /// The chain: one for each server process.
    pub chain: &'a str,
    /// The sequence number in the chain, from 1.
    pub seq: i64,
    /// Hash of the previous entry, in hex; empty for the first.
    pub previous: &'a str,
    /// When it happened.
    pub at: Timestamp,
    /// The actor.
    pub actor: &'a str,
    /// The action's name.
    pub action: &'a str,
    /// The target.
    pub target: &'a str,
    /// Details, as JSON text.
    pub detail: &'a str,
    /// The ID of the request that caused it, if any.
    pub request_id: Option<&'a str>,
}

impl AuditRecord<'_> {
    /// Returns the bytes that are hashed: all fields, each prefixed by its length, so that different entries never have
    /// the same bytes. A missing field has a length that no text can have.
    pub fn canonical_bytes(&self) -> Vec<u8> {
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

/// Returns how many of a chain's oldest entries have expired: those before a time, up to the first entry that has not.
pub fn count_expired(oldest: impl IntoIterator<Item = Timestamp>, before: Timestamp) -> usize {
    oldest.into_iter().take_while(|at| *at < before).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> AuditEvent {
        AuditEvent {
            at: Timestamp(1),
            actor: "admin".to_owned(),
            action: AuditAction::WorkerCreated,
            target: "w_1".to_owned(),
            detail: "{}".to_owned(),
            request_id: Some("r".to_owned()),
        }
    }

    #[test]
    fn every_field_is_hashed_unambiguously() {
        let (entry, other) = (entry(), |change: fn(&mut AuditEvent)| {
            let mut entry = entry();
            change(&mut entry);
            entry.to_record("c", 1, "p").canonical_bytes()
        });
        let changed = [
            entry.to_record("d", 1, "p").canonical_bytes(),
            entry.to_record("c", 2, "p").canonical_bytes(),
            entry.to_record("c", 1, "q").canonical_bytes(),
            other(|entry| entry.at = Timestamp(2)),
            other(|entry| entry.actor = "adminw".to_owned()),
            other(|entry| entry.action = AuditAction::WorkerDeleted),
            other(|entry| entry.target = "w_2".to_owned()),
            other(|entry| entry.detail = "[]".to_owned()),
            other(|entry| entry.request_id = None),
            other(|entry| entry.request_id = Some(String::new())),
            other(|entry| (entry.target, entry.detail) = ("w_1{".to_owned(), "}".to_owned())),
        ];
        let original = entry.to_record("c", 1, "p").canonical_bytes();
        assert!(changed.iter().all(|bytes| *bytes != original));
        assert_ne!(changed[8], changed[9], "a missing request ID differs from an empty one");
    }

    #[test]
    fn action_names_are_unique_and_described() {
        let words: std::collections::BTreeSet<_> = AuditAction::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(words.len(), AuditAction::ALL.len());
        assert!(
            AuditAction::ALL
                .iter()
                .all(|action| action.description().ends_with('.') && !action.description().starts_with(' '))
        );
    }

    #[test]
    fn hashed_text_can_be_stored_in_every_database() {
        let odd = AuditEvent {
            actor: "a\0".to_owned(),
            target: "t\0".to_owned(),
            detail: "d\0".to_owned(),
            request_id: Some("r\0".to_owned()),
            ..entry()
        };
        let kept = odd.sanitized();
        let texts = [&kept.actor, &kept.target, &kept.detail, kept.request_id.as_ref().expect("a request ID")];
        assert!(texts.iter().all(|text| text.ends_with('\u{fffd}') && !text.contains('\0')));
        assert_eq!(entry().sanitized(), entry());
    }

    #[test]
    fn only_the_start_of_a_chain_expires() {
        let expired = |times: &[i64]| count_expired(times.iter().map(|at| Timestamp(*at)), Timestamp(10));
        assert_eq!((expired(&[]), expired(&[1, 9, 10, 3]), expired(&[11, 2]), expired(&[1, 2])), (0, 2, 0, 2));
    }
}
